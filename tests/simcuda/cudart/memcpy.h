// SPDX-License-Identifier: Apache-2.0
// Copies: a bandwidth model for their time, real bytes (up to SIMCUDA_COPY_LIMIT) for their effect.
#pragma once

#include <vector>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {

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

cudaError_t copy_memory(ApiCall& call, const CopyRequest& request, bool per_thread);

// In order, on the first one's stream. As with the real driver, copies of one direction that follow
// each other are one piece of work, and one record.
cudaError_t copy_batch(ApiCall& call, const std::vector<CopyRequest>& copies, bool per_thread);

// The batch functions and 3D peer copies, for the runtime's and the driver's names of them.
std::vector<CopyRequest> linear_batch(void** to, void** from, const size_t* sizes, size_t count,
                                      cudaStream_t stream);
// `place` gives the address of an operand; the runtime's and the driver's are alike but for that.
template <typename Op, typename Place>
std::vector<CopyRequest> box_batch(size_t count, const Op* ops, cudaStream_t stream, Place place) {
  std::vector<CopyRequest> out(ops == nullptr ? 0 : count);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].dst = place(ops[i].dst);
    out[i].src = place(ops[i].src);
    out[i].width = ops[i].extent.width;
    out[i].height = ops[i].extent.height * ops[i].extent.depth;
    out[i].dst_pitch = ops[i].dst.op.ptr.rowLength;
    out[i].src_pitch = ops[i].src.op.ptr.rowLength;
    out[i].stream = stream;
    out[i].async = true;
  }
  return out;
}
cudaError_t run_batch(bool boxes, bool per_thread, const std::vector<CopyRequest>& copies);
cudaError_t run_peer_boxes(bool async, bool per_thread, const CopyRequest& copy);

}  // namespace gpuprof::simcuda
