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
cudaError_t run_batch(bool boxes, bool per_thread, const std::vector<CopyRequest>& copies);
cudaError_t run_peer_boxes(bool async, bool per_thread, const CopyRequest& copy);

}  // namespace gpuprof::simcuda
