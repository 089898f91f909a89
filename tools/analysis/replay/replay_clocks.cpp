// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay_clocks.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tools/analysis/ranks/clocks.h"

namespace gpuprof::analysis {
namespace {

constexpr int64_t kApartNs = 100'000;  // ranks of one clock leave a collective closer than that
constexpr size_t kFewest = 3;          // collectives that tell a clock from a late rank
constexpr int64_t kSteady = 4;         // times as large as the middle half is wide

using Collectives = std::vector<const JointCollective*>;

Collectives left_together(std::span<const Timeline> timelines, const RankComparison& ranks) {
  Collectives out;
  for (const JointCollective& each : ranks.collectives) {
    const bool together =
        !each.by_copies &&
        std::all_of(each.parts.begin(), each.parts.end(), [&](const CollectivePart& part) {
          const Timeline& timeline = timelines[part.rank];
          return ends_together(timeline.trace->text(timeline.shape(part.event).name));
        });
    if (together) out.push_back(&each);
  }
  return out;
}

int64_t offset_of(std::vector<int64_t>& ends) {
  const size_t count = ends.size();
  if (count < kFewest) return 0;
  std::sort(ends.begin(), ends.end());
  const int64_t middle = ends[count / 2], spread = ends[3 * count / 4] - ends[count / 4];
  return std::abs(middle) > kApartNs && kSteady * spread < std::abs(middle) ? middle : 0;
}

class Offsets {
 public:
  Offsets(std::span<const Timeline> timelines, Collectives collectives)
      : timelines_(timelines),
        collectives_(std::move(collectives)),
        ahead_(timelines.size()),
        known_(timelines.size()) {}

  std::vector<int64_t> take() {
    for (const JointCollective* const each : collectives_) {
      const uint32_t first = each->parts.front().rank;
      if (known_[first]) continue;
      known_[first] = true;
      while (add_neighbours()) {
      }
    }
    return std::move(ahead_);
  }

 private:
  int64_t end_of(const CollectivePart& part) const {
    return timelines_[part.rank].events().end_of(part.last) - ahead_[part.rank];
  }
  // Those that are in a collective with one whose clock is known.
  bool add_neighbours() {
    std::vector<std::vector<int64_t>> ends(timelines_.size());
    for (const JointCollective* const each : collectives_) {
      const auto& parts = each->parts;
      const auto known = std::find_if(parts.begin(), parts.end(),
                                      [&](const auto& part) { return known_[part.rank]; });
      if (known == parts.end()) continue;
      for (const CollectivePart& part : parts) {
        if (!known_[part.rank]) ends[part.rank].push_back(end_of(part) - end_of(*known));
      }
    }
    bool any = false;
    for (size_t rank = 0; rank < ends.size(); ++rank) {
      if (ends[rank].empty()) continue;
      ahead_[rank] = offset_of(ends[rank]);
      known_[rank] = any = true;
    }
    return any;
  }

  std::span<const Timeline> timelines_;
  Collectives collectives_;
  std::vector<int64_t> ahead_;
  std::vector<bool> known_;
};

}  // namespace

ReplayClocks replay_clocks(std::span<const Timeline> timelines, const RankComparison& ranks) {
  ReplayClocks out{Offsets(timelines, left_together(timelines, ranks)).take(), {}};
  const bool differ =
      std::any_of(out.ahead.begin(), out.ahead.end(), [](int64_t ahead) { return ahead != 0; });
  out.last_begins.reserve(ranks.collectives.size());
  for (const JointCollective& each : ranks.collectives) {
    int64_t last = differ ? INT64_MIN : each.last_begin;
    for (size_t i = 0; differ && i < each.parts.size(); ++i) {
      const CollectivePart& part = each.parts[i];
      const int64_t begin = timelines[part.rank].events().begin_of(part.event);
      last = std::max(last, begin - out.ahead[part.rank]);
    }
    out.last_begins.push_back(last);
  }
  return out;
}

}  // namespace gpuprof::analysis
