// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tools/analysis/side_by_side.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// Where a collective is to be found again on another rank: ranks number their steps alike, and do
// the same collectives in the same order on each of their communication streams.
struct Place {
  uint64_t step;
  uint32_t stream;  // the how-manieth communication stream of the rank
  int64_t number;   // in the step, on that stream
  auto operator<=>(const Place&) const = default;
};

struct Issued {
  int64_t at;
  Work work;
};

using Placed = std::vector<std::pair<Place, Work>>;

Placed places(const Timeline& timeline) {
  std::vector<Issued> works;
  each_issued_work_of_steps(timeline, [&](const Work& work, int64_t issued) {
    if (work.kind == WorkClass::communication) works.push_back({issued, work});
  });
  std::stable_sort(works.begin(), works.end(),
                   [](const Issued& a, const Issued& b) { return a.at < b.at; });
  std::map<uint32_t, uint32_t> stream_numbers;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> counts;
  Placed out;
  auto step = timeline.steps.begin();
  for (const auto& [time, work] : works) {
    while (step != timeline.steps.end() && step->end <= time) ++step;
    if (step == timeline.steps.end()) break;
    if (time < step->begin) continue;
    const auto next = static_cast<uint32_t>(stream_numbers.size());
    const uint32_t stream = stream_numbers.emplace(work.stream, next).first->second;
    out.emplace_back(Place{step->step, stream, counts[{step->step, stream}]++}, work);
  }
  return out;
}

// A window as a whole begins with another collective on each rank: by how many the numbers of this
// rank's are behind the first rank's, since the same collective runs at the same time. Nothing:
// none does.
std::optional<int64_t> numbers_behind(const Placed& first, const Placed& own, uint32_t stream) {
  constexpr int64_t kMost = 64;
  const auto times = [stream](const Placed& placed) {
    std::vector<Interval> out;
    for (const auto& [place, work] : placed) {
      if (place.stream == stream) out.push_back({work.begin, work.end});
    }
    return out;
  };
  const std::vector<Interval> theirs = times(first), ours = times(own);
  const auto size = static_cast<int64_t>(theirs.size());
  int64_t most = 0;
  std::optional<int64_t> found;
  for (int64_t behind = -kMost; behind <= kMost; ++behind) {
    int64_t together = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      const int64_t other = static_cast<int64_t>(i) + behind;
      if (other < 0 || other >= size) continue;
      const Interval& their = theirs[static_cast<size_t>(other)];
      together += std::max<int64_t>(
          0, std::min(their.end, ours[i].end) - std::max(their.begin, ours[i].begin));
    }
    if (together > most) {
      most = together;
      found = behind;
    }
  }
  return found;
}

// Gives the same collectives the same numbers.
void align(const Placed& first, Placed& own) {
  std::map<uint32_t, std::optional<int64_t>> behind;  // by stream
  for (auto& [place, work] : own) {
    const auto [at, fresh] = behind.try_emplace(place.stream, 0);
    if (fresh) at->second = numbers_behind(first, own, place.stream);
  }
  std::erase_if(own, [&](const auto& each) { return !behind[each.first.stream]; });
  for (auto& [place, work] : own) place.number += *behind[place.stream];
}

void match_collectives(std::span<const Timeline> timelines, RankComparison& out) {
  std::vector<Placed> placed;
  for (const Timeline& timeline : timelines) {
    placed.push_back(places(timeline));
    if (timeline.whole_window) align(placed.front(), placed.back());
  }
  std::map<Place, JointCollective> joint;
  for (uint32_t rank = 0; rank < timelines.size(); ++rank) {
    for (const auto& [place, work] : placed[rank]) {
      const int64_t length = work.end - work.begin;
      const auto [at, fresh] = joint.try_emplace(place, JointCollective{{}, length, work.begin});
      JointCollective& collective = at->second;
      collective.shortest_ns = std::min(collective.shortest_ns, length);
      collective.last_begin = std::max(collective.last_begin, work.begin);
      collective.parts.push_back({rank, work.event});
    }
  }
  for (auto& [place, collective] : joint) {
    if (collective.parts.size() < 2) continue;
    const auto index = static_cast<uint32_t>(out.collectives.size());
    for (const CollectivePart& part : collective.parts) {
      out.joint_of[part.rank].emplace(part.event, index);
      const EventTable& events = timelines[part.rank].events();
      const int64_t length = events.end_of(part.event) - events.begin_of(part.event);
      out.speeds[part.rank].last_pct += length == collective.shortest_ns;  // clocks may differ
      out.speeds[part.rank].waited_us +=
          static_cast<double>(length - collective.shortest_ns) / 1000;
    }
    out.collectives.push_back(std::move(collective));
  }
}

// Sums of one rank over its steps.
RankSpeed sums_of(const Timeline& timeline) {
  RankSpeed out{};
  out.rank = timeline.process->header.rank();
  if (timeline.steps.empty()) return out;
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  const auto inside = [&](int64_t from, int64_t to) {
    return static_cast<double>(std::max<int64_t>(0, std::min(to, end) - std::max(from, begin))) /
           1000;
  };
  // Whole, and by when it was issued: how far its GPU is behind its host differs between ranks.
  each_work_of_steps(timeline, [&](const Work& work) {
    if (work.kind == WorkClass::compute) {
      out.compute_us += static_cast<double>(work.end - work.begin) / 1000;
    }
  });
  double waiting = 0;
  if (timeline.main_thread != kNone) {
    Call call;
    for (ThreadWalk walk(timeline, timeline.main_thread); walk.next(call);) {
      const bool waits = call.kind == CallClass::synchronize || call.blocking;
      if (waits) waiting += inside(call.begin, call.end);
    }
    for (const Interval& range : timeline.threads[timeline.main_thread].data_loading) {
      out.data_loading_us += inside(range.begin, range.end);
    }
  }
  out.host_us = std::max(0.0, inside(begin, end) - waiting - out.data_loading_us);
  const auto steps = static_cast<double>(timeline.steps.size());
  out.compute_us /= steps;
  out.data_loading_us /= steps;
  out.host_us /= steps;
  return out;
}

// Of two ranks the faster one is what the other could be.
void compare_speeds(std::vector<RankSpeed>& speeds, double RankSpeed::*time,
                    double RankSpeed::*factor) {
  std::vector<double> times;
  for (const RankSpeed& speed : speeds) times.push_back(speed.*time);
  const double middle = lower_median(times);
  for (RankSpeed& speed : speeds) speed.*factor = middle > 0 ? speed.*time / middle : 1;
}

}  // namespace

RankComparison compare_ranks(std::span<const Timeline> timelines) {
  RankComparison out;
  out.joint_of.resize(timelines.size());
  out.speeds.resize(timelines.size());
  if (timelines.size() < 2) return out;
  std::vector<std::function<void()>> tasks;
  for (size_t i = 0; i < timelines.size(); ++i) {
    tasks.push_back([&, i] { out.speeds[i] = sums_of(timelines[i]); });
  }
  side_by_side(std::move(tasks));
  match_collectives(timelines, out);
  for (size_t i = 0; i < timelines.size(); ++i) {
    if (!timelines[i].steps.empty()) {
      out.speeds[i].waited_us /= static_cast<double>(timelines[i].steps.size());
    }
  }
  out.comparable = !out.collectives.empty();
  for (RankSpeed& speed : out.speeds) {
    if (out.comparable) speed.last_pct *= 100 / static_cast<double>(out.collectives.size());
  }
  compare_speeds(out.speeds, &RankSpeed::compute_us, &RankSpeed::compute);
  compare_speeds(out.speeds, &RankSpeed::data_loading_us, &RankSpeed::data_loading);
  compare_speeds(out.speeds, &RankSpeed::host_us, &RankSpeed::host);
  return out;
}

}  // namespace gpuprof::analysis
