// SPDX-License-Identifier: Apache-2.0
// The model's kernels: host stubs registered and launched as nvcc's host code does it for <<<>>>.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpuprof::simtrain {

enum class Kernel {
  kGemmForward,
  kLayerNorm,
  kElementwise,
  kGemmBackwardData,
  kGemmBackwardWeight,
  kSoftmaxLoss,
  kOptimizer,
  kCount,
};

// Launches on `stream`; on the simulated device it takes `ns`.
cudaError_t launch(Kernel kernel, dim3 grid, dim3 block, cudaStream_t stream, uint64_t ns);

}  // namespace gpuprof::simtrain
