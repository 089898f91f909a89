// SPDX-License-Identifier: Apache-2.0
// How ranks compare over all windows in which they can be compared.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "formats/trace/process_key.h"
#include "tools/analysis/ranks.h"

namespace gpuprof::analysis {

// Sets the factors of `speeds` to their times by the lower median rank's. Ranks that differ by less
// than kCountsPart of a step are equally fast.
void compare_speeds(std::vector<RankSpeed>& speeds, double step_us);

// Times, and waits, are the mean of windows by their steps; last_pct is of all their collectives.
class SpeedsOfWindows {
 public:
  // A window without comparable ranks counts nothing.
  void add(std::span<const Timeline> timelines, const RankComparison& comparison);

  // By rank; empty if no window was comparable.
  std::vector<RankSpeed> take() const;

 private:
  struct Sum {
    RankSpeed speed;  // times and waits multiplied by steps, last_pct by collectives
    double steps = 0;
  };
  std::map<ProcessKey, Sum> sums_;
  std::vector<double> lengths_us_;  // of all steps
  double collectives_ = 0;
};

}  // namespace gpuprof::analysis
