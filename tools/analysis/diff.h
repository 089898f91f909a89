// SPDX-License-Identifier: Apache-2.0
// What changed between two runs of a program, and whether that is more than noise. docs/REPORT.md
// has the rules.
#pragma once

#include <optional>
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

// What GPUPROF_BUDGET left out of a run, and what recording took of its time, which depends on it.
struct Recording {
  LeftOutKinds left_out;
  std::optional<double> cost_pct;  // as gpuprof counts it; nothing: not known
};

struct Diff {
  size_t base_steps = 0, new_steps = 0;
  MeanChange step_time;  // us
  // By medians and ranks: a few long steps neither hide a change of all the others nor make one.
  MeanChange typical_step;
  bool significant = false;     // step_time's
  std::vector<Change> changes;  // the largest difference in a step first
  std::vector<SetupDifference> setup;
  std::string reason;  // why nothing can be said; empty: it can
  Recording base, other;
  // That one of the runs lacks, so they are not among the changes.
  std::vector<Part> parts_not_compared;
  bool operators_not_compared = false;
  // `step_time` less what recording took of both runs. Nothing: that is not known, or all kinds
  // were recorded.
  std::optional<MeanChange> without_recording;
  // Likewise, if recording took the most that what is counted may stand for.
  std::optional<MeanChange> without_most;

  bool anything_left_out() const {
    return !base.left_out.kinds.empty() || !other.left_out.kinds.empty();
  }
};

inline constexpr size_t kLeastSteps = 3;        // of each run; below it there is no comparison
inline constexpr double kDiscoveryRate = 0.01;  // over all keys
inline constexpr double kKeyFloorPct = 2;       // a key's change below this is no change
inline constexpr double kKeyFloorOfStepPct = 0.1;
inline constexpr double kStepFloorPct = 1;
// So many times what is counted is allowed for what cannot be: CUPTI's work within calls, caches.
inline constexpr double kMostOfCounted = 5;

// Of step times: the interval of 95 % leaves out 0, and the change is no smaller than the floor.
bool is_significant(const MeanChange& step_time);
// What a run lacks to be compared; empty: nothing.
std::string lacking(const RunSample& run);
Diff compare(const RunSample& base, const RunSample& other);

}  // namespace gpuprof::analysis
