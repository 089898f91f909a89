// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/start_up.h"

namespace gpuprof {

bool StartUp::goes_on(uint64_t ticks, size_t graphs, uint64_t patience, uint32_t windows) {
  const bool first = first_ == 0;
  if (first) first_ = ticks;
  if (marks_ <= kFewMarks) ++marks_;
  if (graphs <= graphs_) return false;
  graphs_ = graphs;
  const bool near = marks_ <= kFewMarks;
  marks_ = 0;
  if (first || times_ == kMostTimes || windows > 1) return false;
  if (first_grown_ == 0) first_grown_ = ticks;
  // One more window comes once the program has made no graph for a while.
  const uint64_t since = ticks - (near ? first_grown_ : first_);
  const bool in_time = since <= patience && lost_ < kMostLost;
  if (windows == 1 ? !near : !in_time) return false;
  ++times_;
  return true;
}

}  // namespace gpuprof
