// SPDX-License-Identifier: Apache-2.0
// Copies: a bandwidth model for their time, real bytes (up to SIMCUDA_COPY_LIMIT) for their effect.
#include <cupti.h>

#include <algorithm>
#include <cstring>

#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr uint64_t kCopySetupNs = 1500;
constexpr size_t kStagedBytes = 64 * 1024;  // pageable copies to the device up to this return early

struct CopyRequest {
  void* dst = nullptr;
  const void* src = nullptr;
  size_t width = 0;
  size_t height = 1;
  size_t dst_pitch = 0;
  size_t src_pitch = 0;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  cudaStream_t stream = nullptr;
  bool async = false;
  bool peer = false;
  bool symbol = false;  // one side is a registered device variable
};

struct Side {
  MemoryKind kind = MemoryKind::kPageable;
  int device = 0;
  bool on_device() const { return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged; }
};

Side classify(const void* pointer) {
  const auto known = Core::instance().memory().find(pointer);
  if (!known) return Side{};
  return Side{known->kind, known->device};
}

CopyKind direction(const Side& dst, const Side& src) {
  if (dst.on_device() && src.on_device()) {
    return dst.device == src.device ? CopyKind::kDtoD : CopyKind::kPtoP;
  }
  if (dst.on_device()) return CopyKind::kHtoD;
  return src.on_device() ? CopyKind::kDtoH : CopyKind::kHtoH;
}

// Managed memory counts as either side; what is known to be device memory must be used as such.
bool kind_allowed(cudaMemcpyKind kind, const Side& dst, const Side& src) {
  const auto host_ok = [](const Side& s) { return s.kind != MemoryKind::kDevice; };
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return dst.on_device() && host_ok(src);
    case cudaMemcpyDeviceToHost:
      return src.on_device() && host_ok(dst);
    case cudaMemcpyDeviceToDevice:
      return dst.on_device() && src.on_device();
    case cudaMemcpyHostToHost:
      return host_ok(dst) && host_ok(src);
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

CopyKind explicit_direction(cudaMemcpyKind kind, CopyKind inferred) {
  if (kind == cudaMemcpyHostToDevice) return CopyKind::kHtoD;
  if (kind == cudaMemcpyDeviceToHost) return CopyKind::kDtoH;
  if (kind == cudaMemcpyHostToHost) return CopyKind::kHtoH;
  return inferred;
}

double bandwidth(CopyKind direction, bool pageable) {
  const Settings& s = settings();
  if (direction == CopyKind::kDtoD) return s.device_gb_s;
  if (direction == CopyKind::kPtoP) return s.peer_gb_s;
  return pageable ? s.pageable_gb_s : s.pinned_gb_s;
}

void move_bytes(const CopyRequest& r) {
  size_t left = settings().copy_limit_bytes;
  for (size_t row = 0; row < r.height && left > 0; ++row) {
    const size_t n = std::min(r.width, left);
    std::memmove(static_cast<char*>(r.dst) + row * r.dst_pitch,
                 static_cast<const char*>(r.src) + row * r.src_pitch, n);
    left -= n;
  }
}

// Whether the host waits until the copy is over.
bool host_waits(const CopyRequest& r, CopyKind direction, bool pageable, size_t bytes) {
  const bool touches_host = direction != CopyKind::kDtoD && direction != CopyKind::kPtoP;
  if (!touches_host) return false;
  if (!r.async) return true;
  return pageable && !(direction == CopyKind::kHtoD && bytes <= kStagedBytes);
}

Work describe(const CopyRequest& r, const Side& dst, const Side& src, CopyKind direction) {
  const bool pageable = dst.kind == MemoryKind::kPageable || src.kind == MemoryKind::kPageable;
  Work work;
  work.info.kind = GpuOpKind::kMemcpy;
  work.info.copy_kind = direction;
  work.info.src_kind = src.kind;
  work.info.dst_kind = dst.kind;
  work.info.src_device = src.device;
  work.info.dst_device = dst.device;
  work.info.async = r.async;
  work.info.bytes = static_cast<uint64_t>(r.width) * r.height;
  work.duration = kCopySetupNs + static_cast<uint64_t>(static_cast<double>(work.info.bytes) /
                                                       bandwidth(direction, pageable));
  if (direction == CopyKind::kHtoD) work.engine = EngineKind::kHtoD;
  if (direction == CopyKind::kDtoH) work.engine = EngineKind::kDtoH;
  return work;
}

cudaError_t copy(ApiCall& call, const CopyRequest& r, bool per_thread) {
  const size_t bytes = r.width * r.height;
  call.details.device = thread_state().device;
  call.details.bytes = static_cast<int64_t>(bytes);
  call.details.pointer = r.dst;
  if (bytes == 0) return cudaSuccess;
  if (r.dst == nullptr || r.src == nullptr) return cudaErrorInvalidValue;
  if (r.height > 1 && (r.width > r.dst_pitch || r.width > r.src_pitch)) {
    return cudaErrorInvalidPitchValue;
  }
  const Side dst = classify(r.dst);
  const Side src = classify(r.src);
  if (!r.symbol && !kind_allowed(r.kind, dst, src)) return cudaErrorInvalidValue;
  const CopyKind way = explicit_direction(r.kind, r.peer ? CopyKind::kPtoP : direction(dst, src));
  Work work = describe(r, dst, src, way);
  call.details.copy_kind = way;
  const bool pageable = work.info.src_kind == MemoryKind::kPageable ||
                        work.info.dst_kind == MemoryKind::kPageable;

  Core& core = Core::instance();
  Core::Lock held = core.lock();
  const auto stream = core.stream(r.stream, per_thread);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  call.details.stream = stream->id;
  const OpPtr op = core.submit(*stream, std::move(work), call.correlation());
  move_bytes(r);
  if (op == nullptr || !host_waits(r, way, pageable, bytes)) return cudaSuccess;
  core.block_on(std::move(held), {op});
  return cudaSuccess;
}

CopyRequest linear(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream, bool async) {
  CopyRequest r;
  r.dst = dst;
  r.src = src;
  r.width = bytes;
  r.kind = kind;
  r.stream = stream;
  r.async = async;
  return r;
}

cudaError_t run_copy(const StreamApi& which, const CopyRequest& r, const void* params = nullptr) {
  return run_api(which.api, params, nullptr,
                 [&](ApiCall& call) { return copy(call, r, which.per_thread); });
}

cudaError_t copy_1d(const StreamApi& which, void* dst, const void* src, size_t bytes,
                    cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  const cudaMemcpyAsync_v3020_params params{dst, src, bytes, kind, stream};
  return run_copy(which, linear(dst, src, bytes, kind, stream, async), &params);
}

cudaError_t copy_2d(const StreamApi& which, void* dst, size_t dst_pitch, const void* src,
                    size_t src_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                    cudaStream_t stream, bool async) {
  CopyRequest r = linear(dst, src, width, kind, stream, async);
  r.height = height;
  r.dst_pitch = dst_pitch;
  r.src_pitch = src_pitch;
  return run_copy(which, r);
}

cudaError_t copy_symbol(const StreamApi& which, bool to_symbol, const void* symbol, size_t offset,
                        const void* other, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                        bool async) {
  const size_t size = KernelRegistry::instance().variable_bytes(symbol);
  if (size == 0 || offset + bytes > size) {
    return run_api(which.api, [&](ApiCall&) {
      return size == 0 ? cudaErrorInvalidSymbol : cudaErrorInvalidValue;
    });
  }
  // The host's shadow of the variable stands for it on the device.
  char* place = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  CopyRequest r = to_symbol ? linear(place, other, bytes, kind, stream, async)
                            : linear(const_cast<void*>(other), place, bytes, kind, stream, async);
  r.symbol = true;
  return run_copy(which, r);
}

constexpr StreamApi kMemcpy{{"cudaMemcpy", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020}, false};
constexpr StreamApi kMemcpyPtds{{"cudaMemcpy_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_ptds_v7000},
                                true};
constexpr StreamApi kAsync{{"cudaMemcpyAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020},
                           false};
constexpr StreamApi kAsyncPtsz{
    {"cudaMemcpyAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_ptsz_v7000}, true};
constexpr StreamApi k2d{{"cudaMemcpy2D", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_v3020}, false};
constexpr StreamApi k2dPtds{{"cudaMemcpy2D_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2D_ptds_v7000},
                            true};
constexpr StreamApi k2dAsync{
    {"cudaMemcpy2DAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_v3020}, false};
constexpr StreamApi k2dAsyncPtsz{
    {"cudaMemcpy2DAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy2DAsync_ptsz_v7000}, true};
constexpr StreamApi kPeer{{"cudaMemcpyPeer", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeer_v4000}, false};
constexpr StreamApi kPeerAsync{
    {"cudaMemcpyPeerAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000}, false};
constexpr StreamApi kTo{{"cudaMemcpyToSymbol", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbol_v3020},
                        false};
constexpr StreamApi kToPtds{
    {"cudaMemcpyToSymbol_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbol_ptds_v7000}, true};
constexpr StreamApi kFrom{
    {"cudaMemcpyFromSymbol", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbol_v3020}, false};
constexpr StreamApi kFromPtds{
    {"cudaMemcpyFromSymbol_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbol_ptds_v7000}, true};
constexpr StreamApi kToAsync{
    {"cudaMemcpyToSymbolAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbolAsync_v3020}, false};
constexpr StreamApi kToAsyncPtsz{{"cudaMemcpyToSymbolAsync_ptsz",
                                  CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbolAsync_ptsz_v7000},
                                 true};
constexpr StreamApi kFromAsync{
    {"cudaMemcpyFromSymbolAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbolAsync_v3020}, false};
constexpr StreamApi kFromAsyncPtsz{{"cudaMemcpyFromSymbolAsync_ptsz",
                                    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyFromSymbolAsync_ptsz_v7000},
                                   true};

cudaError_t copy_peer(const StreamApi& which, void* dst, int dst_device, const void* src,
                      int src_device, size_t bytes, cudaStream_t stream, bool async) {
  if (!valid_device(dst_device) || !valid_device(src_device)) {
    return run_api(which.api, [](ApiCall&) { return cudaErrorInvalidDevice; });
  }
  CopyRequest r = linear(dst, src, bytes, cudaMemcpyDefault, stream, async);
  r.peer = dst_device != src_device;
  return run_copy(which, r);
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaMemcpy(void* dst, const void* src, size_t n, cudaMemcpyKind kind) {
  return copy_1d(kMemcpy, dst, src, n, kind, nullptr, false);
}
cudaError_t cudaMemcpy_ptds(void* dst, const void* src, size_t n, cudaMemcpyKind kind) {
  return copy_1d(kMemcpyPtds, dst, src, n, kind, nullptr, false);
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t n, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy_1d(kAsync, dst, src, n, kind, stream, true);
}
cudaError_t cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t n, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return copy_1d(kAsyncPtsz, dst, src, n, kind, stream, true);
}
cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return copy_2d(k2d, dst, dpitch, src, spitch, width, height, kind, nullptr, false);
}
cudaError_t cudaMemcpy2D_ptds(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind) {
  return copy_2d(k2dPtds, dst, dpitch, src, spitch, width, height, kind, nullptr, false);
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return copy_2d(k2dAsync, dst, dpitch, src, spitch, width, height, kind, stream, true);
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* dst, size_t dpitch, const void* src, size_t spitch,
                                   size_t width, size_t height, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return copy_2d(k2dAsyncPtsz, dst, dpitch, src, spitch, width, height, kind, stream, true);
}
cudaError_t cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device, size_t n) {
  return copy_peer(kPeer, dst, dst_device, src, src_device, n, nullptr, false);
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                size_t n, cudaStream_t stream) {
  return copy_peer(kPeerAsync, dst, dst_device, src, src_device, n, stream, true);
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t n, size_t offset,
                               cudaMemcpyKind kind) {
  return copy_symbol(kTo, true, symbol, offset, src, n, kind, nullptr, false);
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* src, size_t n, size_t offset,
                                    cudaMemcpyKind kind) {
  return copy_symbol(kToPtds, true, symbol, offset, src, n, kind, nullptr, false);
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t n, size_t offset,
                                 cudaMemcpyKind kind) {
  return copy_symbol(kFrom, false, symbol, offset, dst, n, kind, nullptr, false);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* dst, const void* symbol, size_t n, size_t offset,
                                      cudaMemcpyKind kind) {
  return copy_symbol(kFromPtds, false, symbol, offset, dst, n, kind, nullptr, false);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t n, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_symbol(kToAsync, true, symbol, offset, src, n, kind, stream, true);
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* src, size_t n,
                                         size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_symbol(kToAsyncPtsz, true, symbol, offset, src, n, kind, stream, true);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t n, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_symbol(kFromAsync, false, symbol, offset, dst, n, kind, stream, true);
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* dst, const void* symbol, size_t n, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_symbol(kFromAsyncPtsz, false, symbol, offset, dst, n, kind, stream, true);
}

}  // extern "C"
