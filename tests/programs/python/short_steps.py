# SPDX-License-Identifier: Apache-2.0
"""Steps of 0.3 ms of computing. Prints at the end of the steps FIRST and LAST, of this thread and process: ns waited for a
processor, as the kernel counts it, and calls of read."""
import ctypes
import sys
import time

FIRST, LAST, STEPS = map(int, sys.argv[1:])
cuda = ctypes.CDLL("libcudart.so.13")


def counts():
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:
        waited = file.read().split()[1]
    with open("/proc/self/io", encoding="ascii") as file:
        reads = dict(line.split(": ") for line in file.read().splitlines())["syscr"]
    return waited, reads


for step in range(STEPS):
    end = time.perf_counter_ns() + 300_000
    while time.perf_counter_ns() < end:
        pass
    cuda.cudaDeviceSynchronize()
    if step in (FIRST, LAST):
        print(*counts())
