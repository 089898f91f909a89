# SPDX-License-Identifier: Apache-2.0
"""libcudart by ctypes: the same work as work.h."""
import ctypes
import sys

cudart = ctypes.CDLL("libcudart.so.13")


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


cudart.simcuda_register_kernel.restype = ctypes.c_void_p
cudart.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
cudart.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
cudart.cudaMemsetAsync.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p]
TO_DEVICE, TO_HOST = 1, 2

host = ctypes.create_string_buffer(4096)
memory, stream, pointer = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
errors = 0
errors += cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) != 0
errors += cudart.cudaStreamCreate(ctypes.byref(stream)) != 0
for step in range(5):
    errors += cudart.cudaMemcpy(memory, host, 4096, TO_DEVICE) != 0
    errors += cudart.cudaMemsetAsync(memory, step, 1024, stream) != 0
    for i in range(10):
        kernel = cudart.simcuda_register_kernel(b"_Z4evenPf" if i % 2 == 0 else b"_Z3oddPf")
        errors += cudart.cudaLaunchKernel(kernel, Dim3(step + 1, 2, 1), Dim3(64, 1, 1), arguments, 0, stream) != 0
    errors += cudart.cudaStreamSynchronize(stream) != 0
    errors += cudart.cudaMemcpy(host, memory, 2048, TO_HOST) != 0
    errors += cudart.cudaDeviceSynchronize() != 0
errors += cudart.cudaFree(memory) != 0
print(errors, "errors")
sys.exit(errors)
