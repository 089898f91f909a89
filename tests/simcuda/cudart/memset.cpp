// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>

#include <algorithm>
#include <cstring>

#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr uint64_t kMemsetSetupNs = 1200;

struct SetRequest {
  void* dst = nullptr;
  size_t pitch = 0;
  int value = 0;
  size_t width = 0;
  size_t height = 1;
  cudaStream_t stream = nullptr;
  bool async = false;
};

void set_bytes(const SetRequest& r) {
  size_t left = settings().copy_limit_bytes;
  for (size_t row = 0; row < r.height && left > 0; ++row) {
    const size_t n = std::min(r.width, left);
    std::memset(static_cast<char*>(r.dst) + row * r.pitch, r.value, n);
    left -= n;
  }
}

Work describe(const SetRequest& r, MemoryKind kind) {
  Work work;
  work.info.kind = GpuOpKind::kMemset;
  work.info.dst_kind = kind;
  work.info.async = r.async;
  work.info.memset_value = static_cast<uint32_t>(r.value) & 0xff;
  work.info.bytes = static_cast<uint64_t>(r.width) * r.height;
  work.duration = kMemsetSetupNs + static_cast<uint64_t>(static_cast<double>(work.info.bytes) /
                                                         settings().memset_gb_s);
  return work;
}

cudaError_t set(ApiCall& call, const SetRequest& r, bool per_thread) {
  call.details.device = thread_state().device;
  call.details.bytes = static_cast<int64_t>(r.width * r.height);
  call.details.pointer = r.dst;
  if (r.width * r.height == 0) return cudaSuccess;
  const auto known = Core::instance().memory().find(r.dst);
  if (!known) return cudaErrorInvalidValue;
  Core& core = Core::instance();
  Core::Lock held = core.lock();
  const auto stream = core.stream(r.stream, per_thread);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
  call.details.stream = stream->id;
  const OpPtr op = core.submit(*stream, describe(r, known->kind), call.correlation());
  set_bytes(r);
  // "Asynchronous with respect to the host except when the target memory is pinned host memory"
  // (CUDA runtime API, "API synchronization behavior").
  call.details.waited = op != nullptr && !r.async && known->kind == MemoryKind::kPinned;
  if (call.details.waited) core.block_on(std::move(held), {op});
  return cudaSuccess;
}

cudaError_t run_set(const StreamApi& which, const SetRequest& r) {
  return run_api(which.api, [&](ApiCall& call) { return set(call, r, which.per_thread); });
}

constexpr StreamApi kSet{{"cudaMemset", CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020}, false};
constexpr StreamApi kSetPtds{{"cudaMemset_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemset_ptds_v7000},
                             true};
constexpr StreamApi kAsync{{"cudaMemsetAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020},
                           false};
constexpr StreamApi kAsyncPtsz{
    {"cudaMemsetAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_ptsz_v7000}, true};
constexpr StreamApi k2d{{"cudaMemset2D", CUPTI_RUNTIME_TRACE_CBID_cudaMemset2D_v3020}, false};
constexpr StreamApi k2dPtds{{"cudaMemset2D_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemset2D_ptds_v7000},
                            true};
constexpr StreamApi k2dAsync{
    {"cudaMemset2DAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemset2DAsync_v3020}, false};
constexpr StreamApi k2dAsyncPtsz{
    {"cudaMemset2DAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemset2DAsync_ptsz_v7000}, true};

constexpr StreamApi k3d{{"cudaMemset3D", CUPTI_RUNTIME_TRACE_CBID_cudaMemset3D_v3020}, false};
constexpr StreamApi k3dPtds{{"cudaMemset3D_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemset3D_ptds_v7000},
                            true};
constexpr StreamApi k3dAsync{
    {"cudaMemset3DAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemset3DAsync_v3020}, false};
constexpr StreamApi k3dAsyncPtsz{
    {"cudaMemset3DAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemset3DAsync_ptsz_v7000}, true};

// Slices without rows between them.
SetRequest box(const cudaPitchedPtr& place, int value, const cudaExtent& extent,
               cudaStream_t stream, bool async) {
  return {place.ptr, place.pitch, value, extent.width, extent.height * extent.depth, stream, async};
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaMemset(void* dst, int value, size_t n) {
  return run_set(kSet, {dst, 0, value, n, 1, nullptr, false});
}
cudaError_t cudaMemset_ptds(void* dst, int value, size_t n) {
  return run_set(kSetPtds, {dst, 0, value, n, 1, nullptr, false});
}
cudaError_t cudaMemsetAsync(void* dst, int value, size_t n, cudaStream_t stream) {
  return run_set(kAsync, {dst, 0, value, n, 1, stream, true});
}
cudaError_t cudaMemsetAsync_ptsz(void* dst, int value, size_t n, cudaStream_t stream) {
  return run_set(kAsyncPtsz, {dst, 0, value, n, 1, stream, true});
}
cudaError_t cudaMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
  return run_set(k2d, {dst, pitch, value, width, height, nullptr, false});
}
cudaError_t cudaMemset2D_ptds(void* dst, size_t pitch, int value, size_t width, size_t height) {
  return run_set(k2dPtds, {dst, pitch, value, width, height, nullptr, false});
}
cudaError_t cudaMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return run_set(k2dAsync, {dst, pitch, value, width, height, stream, true});
}
cudaError_t cudaMemset2DAsync_ptsz(void* dst, size_t pitch, int value, size_t width, size_t height,
                                   cudaStream_t stream) {
  return run_set(k2dAsyncPtsz, {dst, pitch, value, width, height, stream, true});
}
cudaError_t cudaMemset3D(cudaPitchedPtr place, int value, cudaExtent extent) {
  return run_set(k3d, box(place, value, extent, nullptr, false));
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr place, int value, cudaExtent extent) {
  return run_set(k3dPtds, box(place, value, extent, nullptr, false));
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr place, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return run_set(k3dAsync, box(place, value, extent, stream, true));
}
cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr place, int value, cudaExtent extent,
                                   cudaStream_t stream) {
  return run_set(k3dAsyncPtsz, box(place, value, extent, stream, true));
}

}  // extern "C"
