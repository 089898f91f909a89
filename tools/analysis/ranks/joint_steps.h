// SPDX-License-Identifier: Apache-2.0
// Which steps the windows of several ranks have in common: those that each rank has of all with
// which it does collectives, directly or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/ranks.h"

namespace gpuprof::analysis {

// A joint collective: its parts, and of each the number of the step that it is of.
struct StepsOfParts {
  std::span<const CollectivePart> parts;
  std::span<const uint64_t> steps;
};

// Which ranks do collectives with each other, directly or not. Collectives that calls name join
// ranks whose steps may be counted from elsewhere.
struct Joined {
  std::vector<uint32_t> group;   // the lowest rank that it is joined to
  std::vector<int64_t> offsets;  // of step numbers, from that rank's
};
Joined join_ranks(size_t ranks, std::span<const StepsOfParts> joint);

// Sets `joint_steps`, `windows_differ` and `apart`. `out.joint_steps` has all steps of each rank.
void find_joint_steps(std::span<const Timeline> timelines,
                      std::span<const StepsOfParts> collectives, RankComparison& out);

}  // namespace gpuprof::analysis
