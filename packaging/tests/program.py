# SPDX-License-Identifier: Apache-2.0
"""Steps of a CUDA program through ctypes; argument: how many milliseconds one takes."""
import ctypes
import sys
import time

cuda = ctypes.CDLL("libcudart.so.13")
address = ctypes.c_void_p()
for step in range(60):
    assert cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
    assert cuda.cudaMemset(address, 0, ctypes.c_size_t(1 << 20)) == 0
    time.sleep(float(sys.argv[1]) / 1000)
    assert cuda.cudaDeviceSynchronize() == 0
    assert cuda.cudaFree(address) == 0
