// SPDX-License-Identifier: Apache-2.0
// Copies: a bandwidth model for their time, real bytes (up to SIMCUDA_COPY_LIMIT) for their effect.
#pragma once

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

}  // namespace gpuprof::simcuda
