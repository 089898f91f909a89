// SPDX-License-Identifier: Apache-2.0
// Puts a process on another clock.
#pragma once

#include <cmath>
#include <cstdint>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// What a clock shows beyond another one: `offset` ns at `origin`, and `drift` more per ns.
struct ClockLine {
  int64_t origin = 0;
  double offset = 0, drift = 0;

  double at(int64_t time) const { return offset + drift * static_cast<double>(time - origin); }
  // The time that the other clock shows when this one shows `time`.
  int64_t corrected(int64_t time) const { return time - std::llround(at(time)); }
};

// All times in the process but those that only it has any use for (device clocks of CUPTI).
void move_times(Process& process, const ClockLine& clock, size_t shape_count);

}  // namespace gpuprof::analysis
