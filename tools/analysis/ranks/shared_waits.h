// SPDX-License-Identifier: Apache-2.0
// Waits of one GPU in several collectives at a time, as on several streams: it waits once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/intervals.h"

namespace gpuprof::analysis {

struct Wait {
  Interval time;
  uint32_t last;      // the rank that it is for
  double weight = 1;  // as much of it counts
};

// A stretch in which the same waits last, once for each rank that they are for.
struct WaitShare {
  Interval time;
  uint32_t last;
  double share;  // of the stretch: equal ones, each times its wait's weight
};

// In order of time. The shares of waits of weight 1 sum up to the time that these cover.
std::vector<WaitShare> shares_of(std::span<const Wait> waits);

}  // namespace gpuprof::analysis
