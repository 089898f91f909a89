// SPDX-License-Identifier: Apache-2.0
// On which clock ranks meet in the replay. Dumps are aligned before; traces of other tools are not,
// and those of several hosts have times that are off by milliseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/analysis/ranks.h"

namespace gpuprof::analysis {

struct ReplayClocks {
  std::vector<int64_t> ahead;  // by timeline: ns to take off its times
  // By collective: when the last one had come, on the clock of those with `ahead` 0.
  std::vector<int64_t> last_begins;
  // A message that is there before it is sent; empty: none is.
  std::string contradiction;
};

// By the ends of collectives that ranks leave together, else of messages that a rank waited for:
// the median difference, where it is more than ranks that share a clock can have and nearly the
// same in all of them; else none.
ReplayClocks replay_clocks(std::span<const Timeline> timelines, const RankComparison& ranks);

}  // namespace gpuprof::analysis
