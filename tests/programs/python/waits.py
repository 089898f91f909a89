# SPDX-License-Identifier: Apache-2.0
"""A loop that waits for its GPU in two lines, those with a comment WAITS, after each of which the GPU has nothing
to do for a while. Argument: steps."""
import ctypes
import sys
import time

cudart = ctypes.CDLL("libcudart.so.13")
BYTES = ctypes.c_size_t(1 << 20)
memory, loss = ctypes.c_void_p(), ctypes.create_string_buffer(8)
assert cudart.cudaMalloc(ctypes.byref(memory), BYTES) == 0


def spin(seconds):
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        pass


def set_memory(times):
    for _ in range(times):
        assert cudart.cudaMemsetAsync(memory, 0, BYTES, None) == 0


def read_loss():
    return cudart.cudaMemcpy(loss, memory, ctypes.c_size_t(8), 2)  # WAITS 3


def check():
    return cudart.cudaStreamSynchronize(None)  # WAITS 1


for _ in range(int(sys.argv[1])):
    for _ in range(3):
        set_memory(3)
        assert read_loss() == 0
        spin(0.0008)
        set_memory(1)
        assert check() == 0
        spin(0.0008)
    assert cudart.cudaDeviceSynchronize() == 0
