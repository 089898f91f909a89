// SPDX-License-Identifier: Apache-2.0
// Which CUDA the simulator claims to be: SIMCUDA_VERSION, else what the library's own soname says.
#pragma once

#include <cstdint>

namespace gpuprof::simcuda {

// As cudaRuntimeGetVersion gives it: 12060, 13000.
int cuda_version();
// As cuptiGetVersion gives it for that CUDA: 24 for 12.6, 130001 for 13.0.
uint32_t cupti_version();

}  // namespace gpuprof::simcuda
