# SPDX-License-Identifier: Apache-2.0
"""Some calls of each family of the runtime, through ctypes."""
import ctypes

cudart = ctypes.CDLL("libcudart.so.13")


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def call(name, *arguments):
    error = getattr(cudart, name)(*arguments)
    assert error == 0, f"{name}: error {error}"


def pointer():
    return ctypes.c_void_p()


stub = ctypes.create_string_buffer(1)
kernel, name = ctypes.c_void_p(ctypes.addressof(stub)), b"_Z11ways_kernelPf"
register = getattr(cudart, "__cudaRegisterFatBinary")
register.restype = ctypes.c_void_p
module = ctypes.c_void_p(register(ctypes.create_string_buffer(24)))
getattr(cudart, "__cudaRegisterFunction")(module, kernel, name, name, -1, None, None, None, None, None)
cudart.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
stream, device, host, event, graph, instance = (pointer() for _ in range(6))
call("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
call("cudaMalloc", ctypes.byref(device), ctypes.c_size_t(65536))
call("cudaMallocHost", ctypes.byref(host), ctypes.c_size_t(65536))
for _ in range(10):
    call("cudaLaunchKernel", kernel, Dim3(4, 2, 1), Dim3(32, 2, 1), None, 128, stream)
    call("cudaMemcpyAsync", device, host, ctypes.c_size_t(4096), 1, stream)
    call("cudaMemsetAsync", device, 3, ctypes.c_size_t(1024), stream)
call("cudaEventCreateWithFlags", ctypes.byref(event), 0)
call("cudaEventRecord", event, stream)
call("cudaEventSynchronize", event)
call("cudaEventDestroy", event)
call("cudaStreamBeginCapture", stream, 0)
call("cudaLaunchKernel", kernel, Dim3(1, 1, 1), Dim3(64, 1, 1), None, 0, stream)
call("cudaStreamEndCapture", stream, ctypes.byref(graph))
call("cudaGraphInstantiateWithFlags", ctypes.byref(instance), graph, ctypes.c_ulonglong(0))
call("cudaGraphLaunch", instance, stream)
call("cudaStreamSynchronize", stream)
call("cudaFreeHost", host)
call("cudaFree", device)
call("cudaDeviceSynchronize")
print("done")
