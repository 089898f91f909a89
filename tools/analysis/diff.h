// SPDX-License-Identifier: Apache-2.0
// What changed between two runs of a program, and whether that is more than noise. docs/REPORT.md
// has the rules.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/run_sample.h"
#include "tools/analysis/statistics.h"

namespace gpuprof::analysis {

struct Change {
  std::string kind;  // "kernel", "kernels_fused", "kernels_split", "copy", "collective",
                     // "operator", "cause"
  std::string name;  // of a renamed kernel "old -> new", of fused ones "A + B -> C"
  double base_us = 0, new_us = 0;  // in a step
  double change_pct = 0;           // of base_us; new: 0
  bool significant = false;
  bool gone = false, fresh = false;
  std::vector<std::string> from, to;  // kernels: renamed, fused, split
};

struct Diff {
  size_t base_steps = 0, new_steps = 0;
  MeanChange step_time;  // us
  bool significant = false;
  std::vector<Change> changes;  // the largest difference in a step first
  std::string reason;           // why nothing can be said; empty: it can
};

inline constexpr double kStepLevel = 0.05;      // of Welch's p on step times: that of the interval
inline constexpr double kDiscoveryRate = 0.01;  // over all keys
inline constexpr double kKeyFloorPct = 2;       // a key's change below this is no change
inline constexpr double kKeyFloorOfStepPct = 0.1;
inline constexpr double kStepFloorPct = 1;

Diff compare(const RunSample& base, const RunSample& other);

}  // namespace gpuprof::analysis
