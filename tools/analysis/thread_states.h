// SPDX-License-Identifier: Apache-2.0
// What threads did in the steps, by the kernel's counts: ran, waited for a processor, slept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct ThreadStates {
  int32_t rank = 0;
  uint32_t thread = 0;
  std::string name;    // empty: not known
  bool steps = false;  // the steps run on it
  // Of the time between the first and the last reading in the steps.
  double running_pct = 0, waiting_pct = 0, asleep_pct = 0;
  double covered_pct = 0;  // that time, of the steps'
};

// Of each process that has steps, the thread that they run on first. A stretch between two readings
// that begins before the first step or ends after the last one counts by its part in the steps.
std::vector<ThreadStates> thread_states(std::span<const Timeline> timelines);

}  // namespace gpuprof::analysis
