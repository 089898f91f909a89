// SPDX-License-Identifier: Apache-2.0
// Whether a GPU lowered its clock in the window, from NVML's samples.
#pragma once

#include <string>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct Throttle {
  double share_pct = 0;  // of the samples: in which the clock was lowered
  double slower_pct =
      0;             // by how much lower it was in these than the highest seen, over all samples
  std::string text;  // which GPU, why; empty: none did
};

Throttle throttle_of(const Timeline& timeline);

}  // namespace gpuprof::analysis
