// SPDX-License-Identifier: Apache-2.0
// GPUs of one process that run about as many kernels, as replicas do: one whose kernels take longer
// than the others' throughout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct SlowGpu {
  int32_t rank;      // of the process
  uint32_t gpu;      // its number in the process
  size_t gpus;       // that run about as many kernels
  double factor;     // mean time of its kernels to that of the median GPU's
  double excess_us;  // a step
};

// Of GPUs that ran about as many kernels, within a quarter, in at least four steps. Replicas cross
// the boundary of a step at different moments. So kernels are compared by their mean, in each
// quarter of a GPU's sequence: slow is at least a hundredth of the median step in all four.
std::vector<SlowGpu> find_slow_gpus(const Timeline& timeline);

// "rank 0, whose 4 GPUs run about as many kernels: those of GPU 2 take 1.50 x as long as ..."
std::string describe(const SlowGpu& slow);

}  // namespace gpuprof::analysis
