// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/start_up.h"

namespace gpuprof {

bool StartUp::goes_on(uint64_t ticks, size_t graphs, uint64_t patience, bool counted) {
  const bool first = first_ == 0;
  if (first) first_ = ticks;
  if (marks_ <= kFewMarks) ++marks_;
  if (graphs <= graphs_) return false;
  graphs_ = graphs;
  const bool near = marks_ <= kFewMarks;
  marks_ = 0;
  if (first || times_ == kMostTimes) return false;
  if (!near && (counted || ticks - first_ >= patience)) return false;
  ++times_;
  return true;
}

}  // namespace gpuprof
