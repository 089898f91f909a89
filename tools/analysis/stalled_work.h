// SPDX-License-Identifier: Apache-2.0
// Work that was issued and did not begin although no GPU worked: what it waited for is not
// recorded. What the thread that steps run on did meanwhile is.
#pragma once

#include <map>
#include <string>

#include "tools/analysis/intervals.h"
#include "tools/analysis/report.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

class StalledWork {
 public:
  // `idle`: when work of that timeline was stalled, in order.
  void add(const Timeline& timeline, const Intervals& idle);
  // The finding "stalled_work", where that is a good part of the time.
  void report(Report& report) const;

 private:
  std::map<std::string, double> calls_us_;  // of the main thread, by name: in that time
  double idle_us_ = 0;
};

}  // namespace gpuprof::analysis
