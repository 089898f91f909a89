// SPDX-License-Identifier: Apache-2.0
// How much of the steps each GPU and stream of a process works.
#pragma once

#include <cstddef>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Of the time of all steps, without what lies between them, in per cent.
struct GpuShares {
  size_t gpus = 0;         // that did some work in it
  double any_pct = 0;      // at least one of them works
  double busiest_pct = 0;  // the one that works longest
  double at_once = 0;      // how many work while any does, the mean
};

// `timeline` has steps.
GpuShares gpu_shares_of(const Timeline& timeline);

// Of the work that was issued in the steps, whenever it ran.
struct StreamShares {
  size_t working = 0;      // streams with any
  double computes_ns = 0;  // kernels of the stream that has most of them, all steps
};
StreamShares stream_shares_of(const Timeline& timeline);

}  // namespace gpuprof::analysis
