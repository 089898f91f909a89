# SPDX-License-Identifier: Apache-2.0
"""Steps in which the main thread computes for 12 ms and sleeps for 18 ms. Prints, for each step's end, the wall clock and the
kernel's counts of this thread: ns since the epoch, ns run, ns waited for a processor."""
import ctypes
import sys
import time

STEPS = int(sys.argv[1])
cuda = ctypes.CDLL("libcudart.so.13")


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def main():
    memory = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
    for _ in range(STEPS):
        compute(0.012)
        time.sleep(0.018)
        cuda.cudaMemsetAsync(memory, 0, ctypes.c_size_t(1 << 20), None)
        cuda.cudaDeviceSynchronize()
        with open("/proc/thread-self/schedstat", encoding="ascii") as counts:
            running, waiting, _ = counts.read().split()
        print(time.time_ns(), running, waiting)


main()
