// SPDX-License-Identifier: Apache-2.0
// On which clock ranks meet in the replay. Dumps are aligned before; traces of other tools are not,
// and those of several hosts have times that are off by milliseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/ranks.h"

namespace gpuprof::analysis {

struct ReplayClocks {
  std::vector<int64_t> ahead;  // by timeline: ns to take off its times
  // By collective: when the last one had come, on the clock of those with `ahead` 0.
  std::vector<int64_t> last_begins;
};

// By the ends of collectives that ranks leave together: the median difference, where it is more
// than ranks that share a clock can have and nearly the same in all collectives; else none.
ReplayClocks replay_clocks(std::span<const Timeline> timelines, const RankComparison& ranks);

}  // namespace gpuprof::analysis
