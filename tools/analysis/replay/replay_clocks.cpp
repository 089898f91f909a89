// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "tools/analysis/collective_args.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

constexpr int64_t kApartNs = 100'000;  // ranks of one clock leave a collective closer than that
constexpr size_t kFewest = 3;          // collectives that tell a clock from a late rank
constexpr int64_t kSteady = 4;         // times as large as the middle half is wide

using Collectives = std::vector<const JointCollective*>;

bool is_message(std::span<const Timeline> timelines, const JointCollective& collective) {
  return !collective.by_copies && collective.parts.size() == 2 &&
         std::all_of(collective.parts.begin(), collective.parts.end(), [&](const auto& part) {
           const Timeline& timeline = timelines[part.rank];
           const std::string_view name = timeline.trace->text(timeline.shape(part.event).name);
           return name.find("SendRecv") != std::string_view::npos;
         });
}

int64_t length_of(std::span<const Timeline> timelines, const CollectivePart& part) {
  const EventTable& events = timelines[part.rank].events();
  return events.end_of(part.last) - events.begin_of(part.event);
}

// Messages that one of the two ranks waited for: they end on both as the data is there. Of others
// the sender may have left before the receiver came.
Collectives waited_for(std::span<const Timeline> timelines, const RankComparison& ranks) {
  Collectives out;
  for (const JointCollective& each : ranks.collectives) {
    if (!is_message(timelines, each)) continue;
    const int64_t waited =
        length_of(timelines, each.parts[0]) - length_of(timelines, each.parts[1]);
    if (std::abs(waited) > kApartNs) out.push_back(&each);
  }
  return out;
}

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
  // `messages`: tell of ranks that no collective joins.
  Offsets(std::span<const Timeline> timelines, Collectives collectives, Collectives messages)
      : timelines_(timelines),
        collectives_(std::move(collectives)),
        messages_(std::move(messages)),
        ahead_(timelines.size()),
        known_(timelines.size()) {}

  std::vector<int64_t> take() {
    for (const Collectives* const all : {&collectives_, &messages_}) {
      for (const JointCollective* const each : *all) {
        const uint32_t first = each->parts.front().rank;
        if (known_[first]) continue;
        known_[first] = true;
        while (add_neighbours(collectives_) || add_neighbours(messages_)) {
        }
      }
    }
    return std::move(ahead_);
  }

 private:
  int64_t end_of(const CollectivePart& part) const {
    return timelines_[part.rank].events().end_of(part.last) - ahead_[part.rank];
  }
  // Those that are in a collective with one whose clock is known.
  bool add_neighbours(const Collectives& collectives) {
    std::vector<std::vector<int64_t>> ends(timelines_.size());
    for (const JointCollective* const each : collectives) {
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
  Collectives collectives_, messages_;
  std::vector<int64_t> ahead_;
  std::vector<bool> known_;
};

// Of a message's parts the one that receives; nothing: not known.
const CollectivePart* receiver_of(std::span<const Timeline> timelines,
                                  const JointCollective& message) {
  for (const CollectivePart& part : message.parts) {
    const Timeline& timeline = timelines[part.rank];
    const Process& process = *timeline.process;
    const auto args = collective_in(
        timeline.trace->text(process.extras[timeline.events().extra_of(part.event)].args));
    if (args && args->function == "ncclRecv") return &part;
  }
  return nullptr;
}

// That some clocks contradict each other still: data cannot arrive before it is sent. Only traces
// of other tools say in a kernel's arguments which side it is of. Empty: none do.
std::string contradiction(std::span<const Timeline> timelines, const RankComparison& ranks,
                          std::span<const int64_t> ahead) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>> early;  // by sender and receiver
  for (const JointCollective& each : ranks.collectives) {
    if (!is_message(timelines, each)) continue;
    const CollectivePart* const to = receiver_of(timelines, each);
    if (!to) continue;
    const CollectivePart& from = to == &each.parts[0] ? each.parts[1] : each.parts[0];
    const int64_t sent = timelines[from.rank].events().begin_of(from.event) - ahead[from.rank];
    const int64_t there = timelines[to->rank].events().end_of(to->last) - ahead[to->rank];
    if (sent - there > kApartNs) early[{from.rank, to->rank}].push_back(sent - there);
  }
  for (auto& [between, times] : early) {
    if (times.size() < kFewest) continue;
    return fmt::format(
        "rank {} has data {} before rank {} sends it",
        timelines[between.second].process->header.rank(),
        format_us(static_cast<double>(*std::max_element(times.begin(), times.end())) / 1000),
        timelines[between.first].process->header.rank());
  }
  return {};
}

}  // namespace

ReplayClocks replay_clocks(std::span<const Timeline> timelines, const RankComparison& ranks) {
  ReplayClocks out{
      Offsets(timelines, left_together(timelines, ranks), waited_for(timelines, ranks)).take(),
      {},
      {}};
  out.contradiction = contradiction(timelines, ranks, out.ahead);
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
