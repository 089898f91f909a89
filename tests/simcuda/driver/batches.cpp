// SPDX-License-Identifier: Apache-2.0
// The driver's batches of copies, in the signatures of CUDA 12.8 and 13.0, and 3D copies between
// devices.
#include "tests/simcuda/cudart/memcpy.h"
#include "tests/simcuda/driver/driver_api.h"

#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync

namespace gpuprof::simcuda {
namespace {

SIM_API(cuMemcpyBatchAsync)
SIM_API(cuMemcpyBatchAsync_ptsz)
SIM_API(cuMemcpyBatchAsync_v2)
SIM_API(cuMemcpyBatchAsync_v2_ptsz)
SIM_API(cuMemcpy3DBatchAsync)
SIM_API(cuMemcpy3DBatchAsync_ptsz)
SIM_API(cuMemcpy3DBatchAsync_v2)
SIM_API(cuMemcpy3DBatchAsync_v2_ptsz)
SIM_API(cuMemcpy3DPeer)
SIM_API(cuMemcpy3DPeer_ptds)
SIM_API(cuMemcpy3DPeerAsync)
SIM_API(cuMemcpy3DPeerAsync_ptsz)

void** places(CUdeviceptr* addresses) { return reinterpret_cast<void**>(addresses); }

void* place(const CUmemcpy3DOperand& operand) { return pointer(operand.op.ptr.ptr); }

CUresult batch(const ApiInfo& api, bool boxes, bool per_thread,
               const std::vector<CopyRequest>& copies) {
  return as_driver(api, [&] { return run_batch(boxes, per_thread, copies); });
}

CUresult peer(const ApiInfo& api, bool async, bool per_thread, const CUDA_MEMCPY3D_PEER* c,
              CUstream stream) {
  CopyRequest r;
  r.dst = pointer(c->dstDevice), r.src = pointer(c->srcDevice);
  r.width = c->WidthInBytes, r.height = c->Height * c->Depth;
  r.dst_pitch = c->dstPitch, r.src_pitch = c->srcPitch;
  r.stream = stream, r.async = async;
  return as_driver(api, [&] { return run_peer_boxes(async, per_thread, r); });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

#define SIM_BATCH(name, per_thread)                                                               \
  CUresult name(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t n, CUmemcpyAttributes*, \
                size_t*, size_t, CUstream stream) {                                               \
    return batch(k_##name, false, per_thread,                                                     \
                 linear_batch(places(to), places(from), sizes, n, stream));                       \
  }
#define SIM_BATCH_OLD(name, per_thread)                                                           \
  CUresult name(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t n, CUmemcpyAttributes*, \
                size_t*, size_t, size_t*, CUstream stream) {                                      \
    return batch(k_##name, false, per_thread,                                                     \
                 linear_batch(places(to), places(from), sizes, n, stream));                       \
  }
#define SIM_BOXES(name, per_thread)                                                      \
  CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long, CUstream s) { \
    return batch(k_##name, true, per_thread, box_batch(n, ops, s, place));               \
  }
#define SIM_BOXES_OLD(name, per_thread)                                                           \
  CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP* ops, size_t*, unsigned long long, CUstream s) { \
    return batch(k_##name, true, per_thread, box_batch(n, ops, s, place));                        \
  }

extern "C" {

SIM_BATCH_OLD(cuMemcpyBatchAsync, false)
SIM_BATCH_OLD(cuMemcpyBatchAsync_ptsz, true)
SIM_BATCH(cuMemcpyBatchAsync_v2, false)
SIM_BATCH(cuMemcpyBatchAsync_v2_ptsz, true)
SIM_BOXES_OLD(cuMemcpy3DBatchAsync, false)
SIM_BOXES_OLD(cuMemcpy3DBatchAsync_ptsz, true)
SIM_BOXES(cuMemcpy3DBatchAsync_v2, false)
SIM_BOXES(cuMemcpy3DBatchAsync_v2_ptsz, true)
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* c) {
  return peer(k_cuMemcpy3DPeer, false, false, c, nullptr);
}
CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* c) {
  return peer(k_cuMemcpy3DPeer_ptds, false, true, c, nullptr);
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  return peer(k_cuMemcpy3DPeerAsync, true, false, c, stream);
}
CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* c, CUstream stream) {
  return peer(k_cuMemcpy3DPeerAsync_ptsz, true, true, c, stream);
}

}  // extern "C"
