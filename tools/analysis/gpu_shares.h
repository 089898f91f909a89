// SPDX-License-Identifier: Apache-2.0
// How much of the steps each GPU of a process works.
#pragma once

#include <cstddef>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Of the time from the first step's begin to the last one's end, in per cent.
struct GpuShares {
  size_t gpus = 0;         // that did some work in it
  double any_pct = 0;      // at least one of them works
  double busiest_pct = 0;  // the one that works longest
};

// `timeline` has steps.
GpuShares gpu_shares_of(const Timeline& timeline);

}  // namespace gpuprof::analysis
