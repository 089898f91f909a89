# SPDX-License-Identifier: Apache-2.0
"""Calls what no other test program does, once each between two steps."""
import ctypes

cuda, nccl, own = (ctypes.CDLL(name) for name in ("libcudart.so.13", "libnccl.so.2", None))
P, size = ctypes.c_void_p, ctypes.c_size_t


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Pitched(ctypes.Structure):
    _fields_ = [("ptr", P), ("pitch", size), ("xsize", size), ("ysize", size)]


class Extent(ctypes.Structure):
    _fields_ = [("width", size), ("height", size), ("depth", size)]


def zeros():
    return ctypes.create_string_buffer(1024)


comm, second, device, unique = P(), P(), ctypes.c_int(0), UniqueId()
memory, host, handle, operation = P(), zeros(), P(), ctypes.c_int()
assert cuda.cudaMalloc(ctypes.byref(memory), size(4096)) == 0
assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, ctypes.byref(device)) == 0
assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
own.gpuprof_step()
own.gpuprof_step()

cuda.cudaMemcpy3D(zeros())
cuda.cudaMemcpy3DAsync(zeros(), None)
cuda.cudaMemcpy3DPeer(zeros())
cuda.cudaMemcpy2DAsync(memory, size(64), host, size(64), size(64), size(2), 1, None)
cuda.cudaMemcpyToSymbol(memory, host, size(64), size(0), 1)
cuda.cudaMemcpyFromSymbol(host, memory, size(64), size(0), 2)
cuda.cudaMemset2D(memory, size(64), 0, size(64), size(2))
cuda.cudaMemset2DAsync(memory, size(64), 0, size(64), size(2), None)
box, extent = Pitched(memory, 64, 64, 2), Extent(64, 2, 3)
assert cuda.cudaMemset3D(box, 7, extent) == 0
assert cuda.cudaMemset3DAsync(box, 7, extent, None) == 0
assert cuda.cudaMemcpyWithAttributesAsync(memory, host, size(640), None, None) == 0
cuda.cudaMemcpy3DWithAttributesAsync(zeros(), ctypes.c_ulonglong(0), None)
nothing = ctypes.CFUNCTYPE(None, P)(lambda _: None)
assert cuda.cudaLaunchHostFunc_v2(None, nothing, None, 0) == 0
assert cuda.cudaExecutionCtxSynchronize(P(8)) == 0
pinned, pool, block, graph = P(), P(), P(), P()
assert cuda.cudaHostAlloc(ctypes.byref(pinned), size(4096), 0) == 0
cuda.cudaHostRegister(host, size(1024), 0)
cuda.cudaHostUnregister(host)
assert cuda.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 0) == 0
cuda.cudaMallocFromPoolAsync(ctypes.byref(block), size(64), pool, None)
cuda.cudaStreamBeginCaptureToGraph(None, graph, None, None, size(0), 0)
cuda.cudaMemcpyToSymbolAsync(memory, host, size(64), size(0), 1, None)
cuda.cudaMemcpyFromSymbolAsync(host, memory, size(64), size(0), 2, None)
cuda.cudaMemPrefetchBatchAsync(zeros(), zeros(), size(0), zeros(), zeros(), size(0), ctypes.c_ulonglong(0), None)
cuda.cudaStreamAttachMemAsync(None, memory, size(0), 4)

assert nccl.ncclCommInitRankConfig(ctypes.byref(second), 1, unique, 0, None) == 0
memory_of_nccl = P()
nccl.ncclMemAlloc(ctypes.byref(memory_of_nccl), size(4096))
nccl.ncclCommRegister(comm, memory_of_nccl, size(4096), ctypes.byref(handle))
nccl.ncclCommDeregister(comm, handle)
nccl.ncclCommWindowRegister(comm, memory_of_nccl, size(4096), ctypes.byref(handle), 0)
nccl.ncclCommWindowDeregister(comm, handle)
nccl.ncclMemFree(memory_of_nccl)
nccl.ncclRedOpCreatePreMulSum(ctypes.byref(operation), zeros(), 7, 1, comm)
nccl.ncclRedOpDestroy(operation, comm)
assert nccl.ncclCommFinalize(second) == 0
assert nccl.ncclCommAbort(second) == 0
own.gpuprof_step()
