// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/joint_steps.h"

#include <algorithm>

namespace gpuprof::analysis {

Joined join_ranks(size_t ranks, std::span<const StepsOfParts> joint) {
  Joined out{std::vector<uint32_t>(ranks, kNone), std::vector<int64_t>(ranks, 0)};
  for (uint32_t root = 0; root < ranks; ++root) {
    if (out.group[root] != kNone) continue;
    out.group[root] = root;
    for (bool more = true; more;) {
      more = false;
      for (const StepsOfParts& each : joint) {
        const auto& parts = each.parts;
        const auto known = std::find_if(parts.begin(), parts.end(), [&](const auto& part) {
          return out.group[part.rank] == root;
        });
        if (known == parts.end()) continue;
        const auto at = static_cast<size_t>(known - parts.begin());
        for (size_t i = 0; i < parts.size(); ++i) {
          if (out.group[parts[i].rank] != kNone) continue;
          out.group[parts[i].rank] = root;
          out.offsets[parts[i].rank] = out.offsets[known->rank] +
                                       static_cast<int64_t>(each.steps[i]) -
                                       static_cast<int64_t>(each.steps[at]);
          more = true;
        }
      }
    }
  }
  return out;
}

void find_joint_steps(std::span<const Timeline> timelines,
                      std::span<const StepsOfParts> collectives, RankComparison& out) {
  const Joined joined = join_ranks(timelines.size(), collectives);
  constexpr size_t kFewest = 2;  // from the end of one to the end of the next
  struct Numbers {
    int64_t first = INT64_MIN, end = INT64_MAX;
  };
  std::vector<Numbers> common(timelines.size());  // by group
  std::vector<size_t> members(timelines.size());
  for (const uint32_t group : joined.group) ++members[group];
  const auto number = [&](size_t rank, const Step& step) {
    return static_cast<int64_t>(step.step) - joined.offsets[rank];
  };
  for (size_t rank = 0; rank < timelines.size(); ++rank) {
    const std::vector<Step>& steps = timelines[rank].steps;
    if (steps.empty() || members[joined.group[rank]] < 2) continue;
    Numbers& own = common[joined.group[rank]];
    own.first = std::max(own.first, number(rank, steps.front()));
    own.end = std::min(own.end, number(rank, steps.back()) + 1);
  }
  for (size_t rank = 0; rank < timelines.size(); ++rank) {
    const std::vector<Step>& steps = timelines[rank].steps;
    const Numbers& own = common[joined.group[rank]];
    const auto place = [&](int64_t wanted) {
      return static_cast<size_t>(
          std::partition_point(steps.begin(), steps.end(),
                               [&](const Step& step) { return number(rank, step) < wanted; }) -
          steps.begin());
    };
    StepRange& range = out.joint_steps[rank];
    if (own.first == INT64_MIN) continue;
    range.first = place(own.first);
    range.end = std::max(range.first, place(own.end));
    if (range.size() == steps.size()) continue;
    out.windows_differ = true;
    out.apart = out.apart || range.size() < kFewest;
  }
}

}  // namespace gpuprof::analysis
