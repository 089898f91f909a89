// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/analysis/statistics.h"

namespace gpuprof::analysis {
namespace {

// Where a collective is to be found again on another rank: ranks number their steps alike, and do
// the same collectives in the same order on each of their communication streams.
struct Place {
  uint64_t step;
  uint32_t stream;  // the how-manieth communication stream of the rank
  uint32_t number;  // in the step, on that stream
  auto operator<=>(const Place&) const = default;
};

int64_t issued_at(const Timeline& timeline, const Work& work) {
  return work.call == kNone ? work.begin : timeline.calls[work.call].begin;
}

std::map<Place, uint32_t> places(const Timeline& timeline) {
  std::vector<uint32_t> works;
  for (uint32_t i = 0; i < timeline.works.size(); ++i) {
    if (timeline.works[i].kind == WorkClass::communication) works.push_back(i);
  }
  std::stable_sort(works.begin(), works.end(), [&](uint32_t a, uint32_t b) {
    return issued_at(timeline, timeline.works[a]) < issued_at(timeline, timeline.works[b]);
  });
  std::map<uint32_t, uint32_t> stream_numbers;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> counts;
  std::map<Place, uint32_t> out;
  auto step = timeline.steps.begin();
  for (const uint32_t i : works) {
    const Work& work = timeline.works[i];
    const int64_t time = issued_at(timeline, work);
    while (step != timeline.steps.end() && step->end <= time) ++step;
    if (step == timeline.steps.end()) break;
    if (time < step->begin) continue;
    const auto next = static_cast<uint32_t>(stream_numbers.size());
    const uint32_t stream = stream_numbers.emplace(work.stream, next).first->second;
    out.emplace(Place{step->step, stream, counts[{step->step, stream}]++}, i);
  }
  return out;
}

void match_collectives(std::span<const Timeline> timelines, RankComparison& out) {
  std::map<Place, JointCollective> joint;
  for (uint32_t rank = 0; rank < timelines.size(); ++rank) {
    for (const auto& [place, work] : places(timelines[rank])) {
      JointCollective& collective = joint[place];
      const Work& own = timelines[rank].works[work];
      const int64_t length = own.end - own.begin;
      collective.shortest_ns =
          collective.parts.empty() ? length : std::min(collective.shortest_ns, length);
      collective.parts.push_back({rank, work});
    }
  }
  for (uint32_t rank = 0; rank < timelines.size(); ++rank) {
    out.joint_of.emplace_back(timelines[rank].works.size(), kNone);
  }
  for (auto& [place, collective] : joint) {
    if (collective.parts.size() < 2) continue;
    const auto index = static_cast<uint32_t>(out.collectives.size());
    for (const CollectivePart& part : collective.parts) {
      out.joint_of[part.rank][part.work] = index;
      const Work& work = timelines[part.rank].works[part.work];
      out.speeds[part.rank].waited_us +=
          static_cast<double>(work.end - work.begin - collective.shortest_ns) / 1000;
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
  for (const Work& work : timeline.works) {
    if (work.kind == WorkClass::compute) out.compute_us += inside(work.begin, work.end);
  }
  double waiting = 0;
  for (const Call& call : timeline.calls) {
    if (call.thread == timeline.main_thread &&
        (call.kind == CallClass::synchronize || call.blocking)) {
      waiting += inside(call.begin, call.end);
    }
  }
  if (timeline.main_thread != kNone) {
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
  for (const Timeline& timeline : timelines) out.speeds.push_back(sums_of(timeline));
  match_collectives(timelines, out);
  for (size_t i = 0; i < timelines.size(); ++i) {
    if (!timelines[i].steps.empty()) {
      out.speeds[i].waited_us /= static_cast<double>(timelines[i].steps.size());
    }
  }
  out.comparable = timelines.size() > 1 && !out.collectives.empty();
  compare_speeds(out.speeds, &RankSpeed::compute_us, &RankSpeed::compute);
  compare_speeds(out.speeds, &RankSpeed::data_loading_us, &RankSpeed::data_loading);
  compare_speeds(out.speeds, &RankSpeed::host_us, &RankSpeed::host);
  return out;
}

}  // namespace gpuprof::analysis
