// SPDX-License-Identifier: Apache-2.0
// The driver's memory: allocations, and virtual memory, whose parts (addresses, physical memory,
// the mapping of one to the other) are calls of their own.
#include <sys/mman.h>

#include "tests/simcuda/driver/driver_api.h"

namespace gpuprof::simcuda {
namespace {

SIM_API(cuMemAlloc_v2)
SIM_API(cuMemAllocPitch_v2)
SIM_API(cuMemAllocManaged)
SIM_API(cuMemAllocHost_v2)
SIM_API(cuMemHostAlloc)
SIM_API(cuMemHostRegister_v2)
SIM_API(cuMemHostUnregister)
SIM_API(cuMemFree_v2)
SIM_API(cuMemFreeHost)
SIM_API(cuMemAllocAsync)
SIM_API(cuMemAllocAsync_ptsz)
SIM_API(cuMemAllocFromPoolAsync)
SIM_API(cuMemAllocFromPoolAsync_ptsz)
SIM_API(cuMemFreeAsync)
SIM_API(cuMemFreeAsync_ptsz)
SIM_API(cuMemAddressReserve)
SIM_API(cuMemAddressFree)
SIM_API(cuMemCreate)
SIM_API(cuMemRelease)
SIM_API(cuMemMap)
SIM_API(cuMemUnmap)
SIM_API(cuMemSetAccess)
SIM_API(cuMemPrefetchAsync)
SIM_API(cuMemPrefetchAsync_ptsz)
SIM_API(cuMemPrefetchAsync_v2)
SIM_API(cuMemPrefetchAsync_v2_ptsz)
SIM_API(cuMemPrefetchBatchAsync)
SIM_API(cuMemPrefetchBatchAsync_ptsz)
SIM_API(cuMemAdvise)
SIM_API(cuMemAdvise_v2)
SIM_API(cuStreamAttachMemAsync)
SIM_API(cuStreamAttachMemAsync_ptsz)
SIM_GETTER(cuDeviceGetDefaultMemPool)

void** place(CUdeviceptr* out) { return reinterpret_cast<void**>(out); }

void describe(ApiCall& call, CUdeviceptr address, size_t bytes) {
  call.details.device = thread_state().device;
  call.details.pointer = pointer(address);
  call.details.bytes = static_cast<int64_t>(bytes);
}

// Notes what the call is about.
CUresult about(const ApiInfo& api, CUdeviceptr address, size_t bytes) {
  return driver_only(api, [&](ApiCall& call) {
    describe(call, address, bytes);
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t n) {
  return as_driver(k_cuMemAlloc_v2, [&] { return cudaMalloc(place(out), n); });
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned) {
  return as_driver(k_cuMemAllocPitch_v2,
                   [&] { return cudaMallocPitch(place(out), pitch, width, height); });
}
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t n, unsigned flags) {
  return as_driver(k_cuMemAllocManaged, [&] { return cudaMallocManaged(place(out), n, flags); });
}
CUresult cuMemAllocHost_v2(void** out, size_t n) {
  return as_driver(k_cuMemAllocHost_v2, [&] { return cudaMallocHost(out, n); });
}
CUresult cuMemHostAlloc(void** out, size_t n, unsigned flags) {
  return as_driver(k_cuMemHostAlloc, [&] { return cudaHostAlloc(out, n, flags); });
}
CUresult cuMemHostRegister_v2(void* p, size_t n, unsigned flags) {
  return as_driver(k_cuMemHostRegister_v2, [&] { return cudaHostRegister(p, n, flags); });
}
CUresult cuMemHostUnregister(void* p) {
  return as_driver(k_cuMemHostUnregister, [&] { return cudaHostUnregister(p); });
}
CUresult cuMemFree_v2(CUdeviceptr p) {
  return as_driver(k_cuMemFree_v2, [&] { return cudaFree(pointer(p)); });
}
CUresult cuMemFreeHost(void* p) {
  return as_driver(k_cuMemFreeHost, [&] { return cudaFreeHost(p); });
}
CUresult cuMemAllocAsync(CUdeviceptr* out, size_t n, CUstream stream) {
  return as_driver(k_cuMemAllocAsync, [&] { return cudaMallocAsync(place(out), n, stream); });
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t n, CUstream stream) {
  return as_driver(k_cuMemAllocAsync_ptsz,
                   [&] { return cudaMallocAsync_ptsz(place(out), n, stream); });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t n, CUmemoryPool pool, CUstream stream) {
  return as_driver(k_cuMemAllocFromPoolAsync,
                   [&] { return cudaMallocFromPoolAsync(place(out), n, pool, stream); });
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t n, CUmemoryPool pool,
                                      CUstream stream) {
  return as_driver(k_cuMemAllocFromPoolAsync_ptsz,
                   [&] { return cudaMallocFromPoolAsync_ptsz(place(out), n, pool, stream); });
}
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream) {
  return as_driver(k_cuMemFreeAsync, [&] { return cudaFreeAsync(pointer(p), stream); });
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream stream) {
  return as_driver(k_cuMemFreeAsync_ptsz, [&] { return cudaFreeAsync_ptsz(pointer(p), stream); });
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  return as_driver(k_cuDeviceGetDefaultMemPool,
                   [&] { return cudaDeviceGetDefaultMemPool(out, device); });
}

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t n, size_t, CUdeviceptr, unsigned long long) {
  return driver_only(k_cuMemAddressReserve, [&](ApiCall& call) {
    if (out == nullptr || n == 0) return cudaErrorInvalidValue;
    void* const p = ::mmap(nullptr, n, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return cudaErrorMemoryAllocation;
    *out = reinterpret_cast<CUdeviceptr>(p);
    describe(call, *out, n);
    return cudaSuccess;
  });
}
CUresult cuMemAddressFree(CUdeviceptr p, size_t n) {
  return driver_only(k_cuMemAddressFree, [&](ApiCall& call) {
    describe(call, p, n);
    return ::munmap(pointer(p), n) == 0 ? cudaSuccess : cudaErrorInvalidValue;
  });
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t n, const CUmemAllocationProp*,
                     unsigned long long) {
  return driver_only(k_cuMemCreate, [&](ApiCall& call) {
    if (out == nullptr || n == 0) return cudaErrorInvalidValue;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(new size_t(n));
    call.details.bytes = static_cast<int64_t>(n);
    return cudaSuccess;
  });
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return driver_only(k_cuMemRelease, [&](ApiCall&) {
    delete reinterpret_cast<size_t*>(handle);
    return cudaSuccess;
  });
}
CUresult cuMemMap(CUdeviceptr p, size_t n, size_t, CUmemGenericAllocationHandle,
                  unsigned long long) {
  return driver_only(k_cuMemMap, [&](ApiCall& call) {
    describe(call, p, n);
    return Core::instance().memory().map_device(pointer(p), n, thread_state().device)
               ? cudaSuccess
               : cudaErrorInvalidValue;
  });
}
// Of all that is mapped in the range, which must begin and end with a mapping (NVIDIA/cuda-samples,
// vectorAddMMAP/multidevicealloc_memmap.cpp unmaps several by one call).
CUresult cuMemUnmap(CUdeviceptr p, size_t n) {
  return driver_only(k_cuMemUnmap, [&](ApiCall& call) {
    describe(call, p, n);
    for (size_t done = 0; done < n;) {
      const auto gone = Core::instance().memory().release(pointer(p + done));
      if (!gone) return cudaErrorInvalidValue;
      done += gone->bytes;
    }
    return cudaSuccess;
  });
}
CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc*, size_t) {
  return about(k_cuMemSetAccess, p, n);
}
#undef cuMemPrefetchAsync
CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice, CUstream) {
  return about(k_cuMemPrefetchAsync, p, n);
}
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr p, size_t n, CUdevice, CUstream) {
  return about(k_cuMemPrefetchAsync_ptsz, p, n);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t n, CUmemLocation, unsigned, CUstream) {
  return about(k_cuMemPrefetchAsync_v2, p, n);
}
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr p, size_t n, CUmemLocation, unsigned, CUstream) {
  return about(k_cuMemPrefetchAsync_v2_ptsz, p, n);
}
CUresult cuMemPrefetchBatchAsync(CUdeviceptr* p, size_t* n, size_t, CUmemLocation*, size_t*, size_t,
                                 unsigned long long, CUstream) {
  return about(k_cuMemPrefetchBatchAsync, *p, *n);
}
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* p, size_t* n, size_t, CUmemLocation*, size_t*,
                                      size_t, unsigned long long, CUstream) {
  return about(k_cuMemPrefetchBatchAsync_ptsz, *p, *n);
}
#undef cuMemAdvise
CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise, CUdevice) {
  return about(k_cuMemAdvise, p, n);
}
CUresult cuMemAdvise_v2(CUdeviceptr p, size_t n, CUmem_advise, CUmemLocation) {
  return about(k_cuMemAdvise_v2, p, n);
}
CUresult cuStreamAttachMemAsync(CUstream, CUdeviceptr p, size_t n, unsigned) {
  return about(k_cuStreamAttachMemAsync, p, n);
}
CUresult cuStreamAttachMemAsync_ptsz(CUstream, CUdeviceptr p, size_t n, unsigned) {
  return about(k_cuStreamAttachMemAsync_ptsz, p, n);
}

}  // extern "C"
