// SPDX-License-Identifier: Apache-2.0
// The exported copy functions.
#include <cupti.h>

#include "tests/simcuda/cudart/memcpy.h"

namespace gpuprof::simcuda {
namespace {

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
                 [&](ApiCall& call) { return copy_memory(call, r, which.per_thread); });
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

// Slices that lie back to back, as those of all who use the simulator do.
cudaError_t copy_3d(const StreamApi& which, const cudaMemcpy3DParms* p, cudaStream_t stream,
                    bool async) {
  if (p == nullptr) return run_api(which.api, [](ApiCall&) { return cudaErrorInvalidValue; });
  return copy_2d(which, p->dstPtr.ptr, p->dstPtr.pitch, p->srcPtr.ptr, p->srcPtr.pitch,
                 p->extent.width, p->extent.height * p->extent.depth, p->kind, stream, async);
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
constexpr StreamApi k3d{{"cudaMemcpy3D", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3D_v3020}, false};
constexpr StreamApi k3dPtds{{"cudaMemcpy3D_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3D_ptds_v7000},
                            true};
constexpr StreamApi k3dAsync{
    {"cudaMemcpy3DAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DAsync_v3020}, false};
constexpr StreamApi k3dAsyncPtsz{
    {"cudaMemcpy3DAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DAsync_ptsz_v7000}, true};
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
constexpr StreamApi kToAsyncPtsz{
    {"cudaMemcpyToSymbolAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyToSymbolAsync_ptsz_v7000},
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
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) { return copy_3d(k3d, p, nullptr, false); }
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* p) {
  return copy_3d(k3dPtds, p, nullptr, false);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return copy_3d(k3dAsync, p, stream, true);
}
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return copy_3d(k3dAsyncPtsz, p, stream, true);
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
