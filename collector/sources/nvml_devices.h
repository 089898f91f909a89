// SPDX-License-Identifier: Apache-2.0
// The GPUs that this process uses, as NVML knows them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

using NvmlDevice = void*;  // nvmlDevice_t

struct NvmlGpu {
  uint32_t id;  // CUDA's
  NvmlDevice handle;
  NvmlDevice memory;  // of what the process may use: a slice's, where the GPU has some (MIG)
};
inline constexpr size_t kMostNvmlGpus = 64;

// Of an initialised libnvidia-ml; those with a context, of a driver that tells. At most
// kMostNvmlGpus are written to `out`; returns how many. On the drain thread.
size_t find_nvml_gpus(void* library, NvmlGpu* out);

}  // namespace gpuprof
