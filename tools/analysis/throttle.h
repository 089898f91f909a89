// SPDX-License-Identifier: Apache-2.0
// Whether a GPU lowered its clock in the window, from NVML's samples.
#pragma once

#include <string>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct Throttle {
  double share_pct = 0;  // of the samples: in which the clock was lowered
  // By how much lower it was in these than the device's highest clock, over all samples. If that is
  // not recorded, or the device was told to have a lower one: than in samples without a reason.
  // Without such a sample it is unknown: 0.
  double slower_pct = 0;
  bool cost_known = true;
  std::string text;  // which GPU, why; empty: none did
};

Throttle throttle_of(const Timeline& timeline);

}  // namespace gpuprof::analysis
