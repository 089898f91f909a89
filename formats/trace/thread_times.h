// SPDX-License-Identifier: Apache-2.0
// What a thread did between two readings of the kernel's counts.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Of the time between two readings, from 0 to 1.
struct ThreadShares {
  double running, waiting;
  double asleep() const { return std::max(0.0, 1 - running - waiting); }
};

// By stretch between two points: one less than there are points. The kernel counts a wait when it
// is over, and what runs at the scheduler's ticks: what a count has more than its stretch is long
// was in the stretches before. Nothing: the readings are in no order, so that one is of another
// thread.
std::vector<std::optional<ThreadShares>> shares_of(const ThreadTimes& times);

}  // namespace gpuprof
