// SPDX-License-Identifier: Apache-2.0
// How long a thread's stretch between calls is by what it did of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tools/analysis/intervals.h"
#include "tools/analysis/processor_time.h"

namespace gpuprof::analysis {

// ns of [begin, end) without the profiler's work in it, and without what the thread waited for a
// processor in the rest.
inline int64_t own_length(int64_t begin, int64_t end, const ProcessorTime& processor,
                          const Intervals& profiling) {
  int64_t length = end - begin - processor.waited(begin, end);
  auto range = std::partition_point(profiling.begin(), profiling.end(),
                                    [&](const Interval& each) { return each.end <= begin; });
  for (; range != profiling.end() && range->begin < end; ++range) {
    const int64_t first = std::max(range->begin, begin), last = std::min(range->end, end);
    length -= last - first - processor.waited(first, last);
  }
  return length;
}

}  // namespace gpuprof::analysis
