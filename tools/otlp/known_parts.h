// SPDX-License-Identifier: Apache-2.0
// Which parts of a process's steps are known, and their sums.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tools/analysis/left_out_kinds.h"
#include "tools/exported.h"

namespace gpuprof::otlp {

struct KnownParts {
  bool any = false;    // GPU work has times, and no kind of it was left out of the recording
  bool apart = false;  // and no CUDA graph is timed as a whole, whose collectives nobody sees
  analysis::KindSet unset{};  // kinds of records that the settings do not ask for
  std::array<bool, analysis::kParts>
      left_out{};  // that need what they, or GPUPROF_BUDGET, left out

  bool has(analysis::Part part) const {
    const bool hidden = part == analysis::Part::compute || part == analysis::Part::communication;
    return any && (apart || !hidden) && !left_out[static_cast<size_t>(part)];
  }
};

// As far as recorded GPU work tells. `source` has a timeline.
KnownParts known_parts(const Exported& source);
// Of these what is known of a step of the process that ends then.
KnownParts known_until(KnownParts known, const Process& process, int64_t end);

inline int64_t busy_ns(const analysis::PartTimes& parts) {
  int64_t sum = 0;
  for (size_t i = 0; i < analysis::kBusyParts; ++i) sum += parts[i];
  return sum;
}

// The steps of some processes as one.
struct StepSums {
  std::vector<double> seconds;  // of each step
  double wall_ns = 0;
  std::array<double, analysis::kParts> parts_ns{};
  KnownParts known;  // of all of them

  double share(analysis::Part part) const { return parts_ns[static_cast<size_t>(part)] / wall_ns; }
  // In which the GPU is known to have had no work.
  double idle_share() const;
};
// Workers of data loaders have no steps.
StepSums sum_up(std::span<const Exported> sources);

}  // namespace gpuprof::otlp
