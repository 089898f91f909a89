// SPDX-License-Identifier: Apache-2.0
// How much longer the steps of a window took than those before it. What the hooks and CUPTI say
// that they took is a part of what recording costs: the rest is in the framework, in CUPTI's
// callbacks and in the processor's caches. The step log has both.
#pragma once

#include <cstddef>
#include <optional>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

struct RecordingSlowdown {
  size_t steps_before = 0;
  double before_us = 0, window_us = 0;  // medians
  double percent() const { return 100 * (window_us / before_us - 1); }
};

// Nothing: fewer than five steps before the window or in it are known (of those before, without the
// program's first ones and the warm-up, the last 20 count; of the window's, all but the first and
// the last), or they scatter more than they differ: the middle halves overlap.
std::optional<RecordingSlowdown> recording_slowdown(const Process& process);

}  // namespace gpuprof::analysis
