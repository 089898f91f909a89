// SPDX-License-Identifier: Apache-2.0
// Managed memory: prefetches and advice, which only the truth log shows. Their signatures changed
// from CUDA 12 to 13; the header declares the newer.
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v13000
#define cudaMemAdvise cudaMemAdvise_v13000
#include <cupti.h>

#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cudart/entry_points.h"
#undef cudaMemPrefetchAsync
#undef cudaMemAdvise

namespace gpuprof::simcuda {
namespace {

cudaError_t about(const ApiInfo& api, const void* address, size_t bytes) {
  return run_api(api, [&](ApiCall& call) {
    call.details.device = thread_state().device;
    call.details.pointer = address;
    call.details.bytes = static_cast<int64_t>(bytes);
    const auto known = Core::instance().memory().find(address);
    return known ? cudaSuccess : cudaErrorInvalidValue;
  });
}

bool before_13() { return cuda_version() < 13000; }

constexpr ApiInfo kBatch{"cudaMemPrefetchBatchAsync",
                         CUPTI_RUNTIME_TRACE_CBID_cudaMemPrefetchBatchAsync_v13000};
constexpr ApiInfo kBatchPtsz{"cudaMemPrefetchBatchAsync_ptsz",
                             CUPTI_RUNTIME_TRACE_CBID_cudaMemPrefetchBatchAsync_ptsz_v13000};
constexpr ApiInfo kAttach{"cudaStreamAttachMemAsync",
                          CUPTI_RUNTIME_TRACE_CBID_cudaStreamAttachMemAsync_v6000};
constexpr ApiInfo kAttachPtsz{"cudaStreamAttachMemAsync_ptsz",
                              CUPTI_RUNTIME_TRACE_CBID_cudaStreamAttachMemAsync_ptsz_v7000};

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaMemPrefetchAsync(const void* address, size_t bytes, uintptr_t, uintptr_t,
                                 uintptr_t) {
  return about(
      {"cudaMemPrefetchAsync", before_13() ? CUPTI_RUNTIME_TRACE_CBID_cudaMemPrefetchAsync_v8000
                                           : CUPTI_RUNTIME_TRACE_CBID_cudaMemPrefetchAsync_v12020},
      address, bytes);
}
cudaError_t cudaMemPrefetchAsync_ptsz(const void* address, size_t bytes, uintptr_t, uintptr_t,
                                      uintptr_t) {
  return about({"cudaMemPrefetchAsync_ptsz",
                before_13() ? CUPTI_RUNTIME_TRACE_CBID_cudaMemPrefetchAsync_ptsz_v8000
                            : CUPTI_RUNTIME_TRACE_CBID_cudaMemPrefetchAsync_ptsz_v12020},
               address, bytes);
}
cudaError_t cudaMemAdvise(const void* address, size_t bytes, int, uintptr_t) {
  return about({"cudaMemAdvise", before_13() ? CUPTI_RUNTIME_TRACE_CBID_cudaMemAdvise_v8000
                                             : CUPTI_RUNTIME_TRACE_CBID_cudaMemAdvise_v12020},
               address, bytes);
}
cudaError_t cudaMemPrefetchBatchAsync(void** addresses, size_t* sizes, size_t, cudaMemLocation*,
                                      size_t*, size_t, unsigned long long, cudaStream_t) {
  return about(kBatch, addresses[0], sizes[0]);
}
cudaError_t cudaMemPrefetchBatchAsync_ptsz(void** addresses, size_t* sizes, size_t,
                                           cudaMemLocation*, size_t*, size_t, unsigned long long,
                                           cudaStream_t) {
  return about(kBatchPtsz, addresses[0], sizes[0]);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void* address, size_t bytes, unsigned) {
  return about(kAttach, address, bytes);
}
cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t, void* address, size_t bytes, unsigned) {
  return about(kAttachPtsz, address, bytes);
}

}  // extern "C"
