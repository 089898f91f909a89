// SPDX-License-Identifier: Apache-2.0
// Copies in batches, whose signatures changed from CUDA 12 to 13, and 3D copies between devices.
// The header declares only the newer form of the batches.
#define cudaMemcpyBatchAsync cudaMemcpyBatchAsync_v13000
#define cudaMemcpy3DBatchAsync cudaMemcpy3DBatchAsync_v13000
#include <cupti.h>

#include "tests/simcuda/core/later_callbacks.h"
#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cudart/memcpy.h"
#undef cudaMemcpyBatchAsync
#undef cudaMemcpy3DBatchAsync

namespace gpuprof::simcuda {
namespace {

// [boxes][per thread], by the CUDA that is simulated.
StreamApi batch_api(bool boxes, bool per_thread) {
  constexpr const char* kNames[2][2] = {{"cudaMemcpyBatchAsync", "cudaMemcpyBatchAsync_ptsz"},
                                        {"cudaMemcpy3DBatchAsync", "cudaMemcpy3DBatchAsync_ptsz"}};
  constexpr uint32_t kOld[2][2] = {{CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v12080,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_ptsz_v12080},
                                   {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DBatchAsync_v12080,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DBatchAsync_ptsz_v12080}};
  constexpr uint32_t kNew[2][2] = {{CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v13000,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_ptsz_v13000},
                                   {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DBatchAsync_v13000,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DBatchAsync_ptsz_v13000}};
  const auto& ids = cuda_version() < 13000 ? kOld : kNew;
  return {{kNames[boxes][per_thread], ids[boxes][per_thread]}, per_thread};
}

void* place(const cudaMemcpy3DOperand& operand) {
  return operand.type == cudaMemcpyOperandTypePointer ? operand.op.ptr.ptr : nullptr;
}

CopyRequest peer_box(const cudaMemcpy3DPeerParms* p, cudaStream_t stream, bool async) {
  CopyRequest r;
  r.dst = p->dstPtr.ptr, r.src = p->srcPtr.ptr;
  r.width = p->extent.width, r.height = p->extent.height * p->extent.depth;
  r.dst_pitch = p->dstPtr.pitch, r.src_pitch = p->srcPtr.pitch;
  r.stream = stream, r.async = async;
  return r;
}

// CUDA 12 has an argument more before the stream: where to say which copy failed.
cudaStream_t stream_of(uintptr_t in_13, uintptr_t in_12) {
  return reinterpret_cast<cudaStream_t>(cuda_version() < 13000 ? in_12 : in_13);
}

}  // namespace

std::vector<CopyRequest> linear_batch(void** to, void** from, const size_t* sizes, size_t count,
                                      cudaStream_t stream) {
  std::vector<CopyRequest> out(to == nullptr || from == nullptr || sizes == nullptr ? 0 : count);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].dst = to[i];
    out[i].src = from[i];
    out[i].width = sizes[i];
    out[i].stream = stream;
    out[i].async = true;
  }
  return out;
}

namespace {

cudaError_t run_copies(const StreamApi& which, const std::vector<CopyRequest>& copies) {
  return run_api(which.api,
                 [&](ApiCall& call) { return copy_batch(call, copies, which.per_thread); });
}

cudaError_t run_one(const StreamApi& which, void* to, const void* from, size_t bytes,
                    cudaStream_t stream) {
  CopyRequest copy;
  copy.dst = to, copy.src = from, copy.width = bytes;
  copy.stream = stream, copy.async = true;
  return run_api(which.api,
                 [&](ApiCall& call) { return copy_memory(call, copy, which.per_thread); });
}

}  // namespace

cudaError_t run_batch(bool boxes, bool per_thread, const std::vector<CopyRequest>& copies) {
  return run_copies(batch_api(boxes, per_thread), copies);
}

cudaError_t run_peer_boxes(bool async, bool per_thread, const CopyRequest& copy) {
  constexpr StreamApi kApis[2][2] = {
      {{{"cudaMemcpy3DPeer", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DPeer_v4000}, false},
       {{"cudaMemcpy3DPeer_ptds", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DPeer_ptds_v7000}, true}},
      {{{"cudaMemcpy3DPeerAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DPeerAsync_v4000}, false},
       {{"cudaMemcpy3DPeerAsync_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy3DPeerAsync_ptsz_v7000},
        true}}};
  return run_api(kApis[async][per_thread].api,
                 [&](ApiCall& call) { return copy_memory(call, copy, per_thread); });
}

}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count, void*,
                                 size_t*, size_t, uintptr_t a, uintptr_t b) {
  return run_batch(false, false, linear_batch(to, from, sizes, count, stream_of(a, b)));
}
cudaError_t cudaMemcpyBatchAsync_ptsz(void** to, void** from, size_t* sizes, size_t count, void*,
                                      size_t*, size_t, uintptr_t a, uintptr_t b) {
  return run_batch(false, true, linear_batch(to, from, sizes, count, stream_of(a, b)));
}
cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp* ops, uintptr_t, uintptr_t b,
                                   uintptr_t c) {
  return run_batch(true, false, box_batch(count, ops, stream_of(b, c), place));
}
cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, cudaMemcpy3DBatchOp* ops, uintptr_t,
                                        uintptr_t b, uintptr_t c) {
  return run_batch(true, true, box_batch(count, ops, stream_of(b, c), place));
}
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* p) {
  return run_peer_boxes(false, false, peer_box(p, nullptr, false));
}
cudaError_t cudaMemcpy3DPeer_ptds(const cudaMemcpy3DPeerParms* p) {
  return run_peer_boxes(false, true, peer_box(p, nullptr, false));
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return run_peer_boxes(true, false, peer_box(p, stream, true));
}
cudaError_t cudaMemcpy3DPeerAsync_ptsz(const cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  return run_peer_boxes(true, true, peer_box(p, stream, true));
}
// Since 13.2.
cudaError_t cudaMemcpyWithAttributesAsync(void* to, const void* from, size_t bytes, void*,
                                          cudaStream_t stream) {
  return run_one({{"cudaMemcpyWithAttributesAsync", kLaterCopy}, false}, to, from, bytes, stream);
}
cudaError_t cudaMemcpyWithAttributesAsync_ptsz(void* to, const void* from, size_t bytes, void*,
                                               cudaStream_t stream) {
  return run_one({{"cudaMemcpyWithAttributesAsync_ptsz", kLaterCopyPtsz}, true}, to, from, bytes,
                 stream);
}
cudaError_t cudaMemcpy3DWithAttributesAsync(cudaMemcpy3DBatchOp* op, unsigned long long,
                                            cudaStream_t stream) {
  return run_copies({{"cudaMemcpy3DWithAttributesAsync", kLaterCopy3d}, false},
                    box_batch(1, op, stream, place));
}
cudaError_t cudaMemcpy3DWithAttributesAsync_ptsz(cudaMemcpy3DBatchOp* op, unsigned long long,
                                                 cudaStream_t stream) {
  return run_copies({{"cudaMemcpy3DWithAttributesAsync_ptsz", kLaterCopy3dPtsz}, true},
                    box_batch(1, op, stream, place));
}

}  // extern "C"
