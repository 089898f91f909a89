// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "tools/analysis/intervals.h"
#include "tools/analysis/processor_time.h"
#include "tools/analysis/ranks/clocks.h"
#include "tools/analysis/ranks/joint_steps.h"
#include "tools/analysis/ranks/places.h"
#include "tools/analysis/ranks/rank_speeds.h"
#include "tools/analysis/ranks/shared_waits.h"
#include "tools/analysis/ranks/slow_ranks.h"
#include "tools/analysis/side_by_side.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/throttle.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// A collective while its parts are gathered, and where each of them is.
struct Gathered {
  JointCollective collective;
  std::vector<uint64_t> steps;    // by part
  std::vector<uint32_t> devices;  // by part
  size_t works = 0;
  uint32_t index = kNone;  // in RankComparison::collectives; kNone: it is not joint

  // Ranks come one after the other.
  void add(const Timeline& timeline, uint32_t rank, uint64_t step, const Work& work) {
    ++works;
    collective.by_copies |= timeline.shape(work.event).kind == Kind::gpu_copy;
    const uint32_t device = timeline.streams[work.stream].name.device;
    std::vector<CollectivePart>& parts = collective.parts;
    for (size_t i = parts.size(); i-- > 0 && parts[i].rank == rank;) {
      if (devices[i] != device) continue;
      const EventTable& events = timeline.events();
      if (work.begin < events.begin_of(parts[i].event)) parts[i].event = work.event;
      if (work.end > events.end_of(parts[i].last)) parts[i].last = work.event;
      return;
    }
    parts.push_back({rank, work.event, work.event});
    steps.push_back(step);
    devices.push_back(device);
  }
  void finish(std::span<const Timeline> timelines) {
    collective.shortest_ns = INT64_MAX, collective.last_begin = INT64_MIN;
    for (const CollectivePart& part : collective.parts) {
      const EventTable& events = timelines[part.rank].events();
      const int64_t begin = events.begin_of(part.event);
      collective.shortest_ns = std::min(collective.shortest_ns, events.end_of(part.last) - begin);
      collective.last_begin = std::max(collective.last_begin, begin);
    }
  }
};

// Of those that stand by their order beside others whose calls have names, by which clocks are one.
// Ranks are in one at the same time, and leave it together: where they do not, as many were of
// different ranks.
bool ran_together(std::span<const Timeline> timelines, const JointCollective& collective) {
  constexpr int64_t kApartNs = 100'000;  // leave together: ranks that leave no further apart
  int64_t first_end = INT64_MAX, last_end = INT64_MIN;
  bool together = true;
  for (const CollectivePart& part : collective.parts) {
    const Timeline& timeline = timelines[part.rank];
    const int64_t end = timeline.events().end_of(part.last);
    first_end = std::min(first_end, end), last_end = std::max(last_end, end);
    together &= ends_together(timeline.trace->text(timeline.shape(part.event).name));
  }
  if (collective.last_begin > first_end) return false;
  return !together || last_end - first_end <= std::max(kApartNs, collective.shortest_ns);
}

// Adds to the speeds what ranks wait in joint collectives, and how often each came last. GPUs of a
// process wait side by side: a rank's wait is the mean of its GPUs that are in such collectives, so
// that a job has the same figures however its GPUs are spread over processes.
class JointWaits {
 public:
  JointWaits(std::span<const Timeline> timelines, RankComparison& out)
      : timelines_(timelines), out_(out), waits_(timelines.size()), devices_(timelines.size()) {}

  void add(const Gathered& gathered) {
    const JointCollective& collective = gathered.collective;
    if (collective.by_copies || !is_of_joint_steps(gathered)) return;
    ++out_.timed;
    std::map<uint32_t, bool> last;  // by rank: whether one of its GPUs came last
    const uint32_t awaited = last_of(collective);
    for (size_t i = 0; i < collective.parts.size(); ++i) {
      const CollectivePart& part = collective.parts[i];
      const EventTable& events = timelines_[part.rank].events();
      const Interval all{events.begin_of(part.event), events.end_of(part.last)};
      last[part.rank] |= all.length() == collective.shortest_ns;  // clocks may differ
      devices_[part.rank].insert(gathered.devices[i]);
      if (all.length() == collective.shortest_ns) continue;
      waits_[part.rank][gathered.steps[i]][gathered.devices[i]].push_back(
          {{all.begin, all.end - collective.shortest_ns}, awaited});
    }
    for (const auto& [rank, came_last] : last) {
      ++out_.speeds[rank].collectives;
      out_.speeds[rank].last_pct += came_last;
    }
  }

  void finish(std::vector<StepTimes>& of_ranks) {
    for (size_t rank = 0; rank < timelines_.size(); ++rank) {
      std::vector<double> waited, exposed;
      std::map<uint64_t, Sum> sums = sums_of(rank);
      const StepRange joint = out_.joint_steps[rank];
      const double count = static_cast<double>(std::max<size_t>(1, joint.size()));
      for (const auto& [step, sum] : sums) {
        out_.speeds[rank].waited_us += sum.waited_us / count;
        out_.speeds[rank].exposed_us += sum.exposed_us / count;
        out_.exposed_us[step] += sum.exposed_us;
        for (const auto& [last, us] : sum.of_last) out_.speeds[last].awaited_us += us / count;
      }
      for (const Step& step : timelines_[rank].steps) {
        waited.push_back(sums[step.step].waited_us);
        exposed.push_back(sums[step.step].exposed_us);
      }
      RankSpeed& speed = out_.speeds[rank];
      speed.waited_median_us = median_of(waited, joint);
      speed.exposed_median_us = median_of(exposed, joint);
      if (out_.timed > 0) of_ranks[rank].waited = std::move(waited);
    }
  }

 private:
  struct Sum {
    double waited_us = 0, exposed_us = 0;
    std::map<uint32_t, double> of_last;  // by rank that came last: exposed
  };

  // Clocks may differ: the one that was in it for the shortest time.
  uint32_t last_of(const JointCollective& collective) const {
    const auto found = std::find_if(
        collective.parts.begin(), collective.parts.end(), [&](const CollectivePart& part) {
          const EventTable& events = timelines_[part.rank].events();
          return events.end_of(part.last) - events.begin_of(part.event) == collective.shortest_ns;
        });
    return found->rank;
  }

  // In other steps some ranks are not recorded, and it is not known who waited for whom.
  bool is_of_joint_steps(const Gathered& gathered) const {
    for (size_t i = 0; i < gathered.steps.size(); ++i) {
      const uint32_t rank = gathered.collective.parts[i].rank;
      const StepRange joint = out_.joint_steps[rank];
      const std::vector<Step>& steps = timelines_[rank].steps;
      if (joint.size() == 0 || gathered.steps[i] < steps[joint.first].step) return false;
      if (gathered.steps[i] > steps[joint.end - 1].step) return false;
    }
    return true;
  }

  static double median_of(const std::vector<double>& of_steps, StepRange range) {
    const auto begin = of_steps.begin();
    return quantile(
        {begin + static_cast<ptrdiff_t>(range.first), begin + static_cast<ptrdiff_t>(range.end)},
        0.5);
  }

  // By step, the mean of the rank's GPUs.
  std::map<uint64_t, Sum> sums_of(size_t rank) {
    std::map<uint64_t, Sum> out;
    if (waits_[rank].empty()) return out;
    const double unit = 1000 * static_cast<double>(devices_[rank].size());
    const Measure computing = computing_of(timelines_[rank]);
    for (auto& [step, of_devices] : waits_[rank]) {
      for (auto& [device, waits] : of_devices) {
        Sum& sum = out[step];
        for (const auto& [time, last, share] : shares_of(waits)) {
          const int64_t exposed = time.length() - computing.inside(time.begin, time.end);
          const double exposed_us = share * static_cast<double>(exposed) / unit;
          sum.waited_us += share * static_cast<double>(time.length()) / unit;
          sum.exposed_us += exposed_us;
          sum.of_last[last] += exposed_us;
        }
      }
    }
    return out;
  }

  static Measure computing_of(const Timeline& timeline) {
    Intervals out;
    each_work(timeline, [&](const Work& work) {
      if (work.kind == WorkClass::compute) out.push_back({work.begin, work.end});
    });
    return Measure(cover(std::move(out)));
  }

  std::span<const Timeline> timelines_;
  RankComparison& out_;
  // By rank, step and device.
  std::vector<std::map<uint64_t, std::map<uint32_t, std::vector<Wait>>>> waits_;
  std::vector<std::set<uint32_t>> devices_;  // by rank
};

void match_collectives(std::span<const Timeline> timelines, RankComparison& out,
                       std::vector<StepTimes>& of_ranks) {
  const Places places = places_of(timelines);
  out.named = places.named;
  std::map<Place, Gathered> joint;
  for (uint32_t rank = 0; rank < timelines.size(); ++rank) {
    for (const auto& [place, step, work] : places.of_ranks[rank]) {
      joint[place].add(timelines[rank], rank, step, work);
    }
  }
  std::vector<StepsOfParts> found;
  for (auto& [place, gathered] : joint) {
    out.works += gathered.works;
    if (gathered.collective.parts.size() < 2) continue;
    gathered.finish(timelines);
    const bool certain = !places.named || place.by_call();
    if (!certain && !ran_together(timelines, gathered.collective)) continue;
    out.matched += gathered.works;
    gathered.index = static_cast<uint32_t>(out.collectives.size());
    out.collectives.push_back(gathered.collective);
    found.push_back({gathered.collective.parts, gathered.steps});
  }
  find_joint_steps(timelines, found, out);
  JointWaits waits(timelines, out);
  for (const auto& [place, gathered] : joint) {
    if (gathered.index != kNone) waits.add(gathered);
  }
  for (uint32_t rank = 0; rank < timelines.size(); ++rank) {
    for (const auto& [place, step, work] : places.of_ranks[rank]) {
      const uint32_t index = joint.find(place)->second.index;
      if (index != kNone) out.joint_of[rank].emplace(work.event, index);
    }
  }
  waits.finish(of_ranks);
}

// The time that all windows have in common.
Interval common_time(std::span<const Timeline> timelines) {
  Interval out{INT64_MIN, INT64_MAX};
  for (const Timeline& each : timelines) {
    if (each.steps.empty()) continue;
    out.begin = std::max(out.begin, each.steps.front().begin);
    out.end = std::min(out.end, each.steps.back().end);
  }
  return out;
}

// Of a whole window the common time; from the first step to the last one of a rank that has some.
Interval time_of(const Timeline& own, Interval common) {
  if (own.steps.empty()) return {0, 0};
  return own.whole_window ? common : Interval{own.steps.front().begin, own.steps.back().end};
}

// What one rank does in each of its steps, or in that time of a whole window, us.
class TimesOfSteps {
 public:
  TimesOfSteps(const Timeline& timeline, const Interval& time)
      : timeline_(timeline), whole_(timeline.whole_window) {
    for (const Step& step : timeline.steps) times_.push_back({step.begin, step.end});
    if (whole_) times_.assign(1, time);
    for (auto* const each : {&compute_, &copies_, &loading_, &waiting_, &allocation_, &launches_,
                             &idle_allocation_, &idle_launches_}) {
      each->resize(times_.size());
    }
  }

  // Fills `each`, step by step.
  RankSpeed medians(StepTimes& each) {
    RankSpeed out{};
    out.rank = timeline_.process->header.rank();
    if (times_.empty()) return out;
    add_compute();
    if (timeline_.main_thread != kNone) add_host();
    std::vector<double> host, rest, without_processor;
    const ProcessorTime processor = processor_time();
    for (size_t i = 0; i < times_.size(); ++i) {
      const double length = static_cast<double>(times_[i].end - times_[i].begin) / 1000;
      const double waited =
          static_cast<double>(processor.waited(times_[i].begin, times_[i].end)) / 1000;
      host.push_back(
          std::max(0.0, length - waiting_[i] - loading_[i] - waited - profiling_us(times_[i])));
      rest.push_back(std::max(0.0, host.back() - allocation_[i] - launches_[i]));
      without_processor.push_back(waited);
    }
    out.compute_us = quantile(compute_, 0.5);
    out.data_loading_us = quantile(loading_, 0.5);
    out.host_us = quantile(host, 0.5);
    each.rank = out.rank;
    if (!whole_) {
      for (const Step& step : timeline_.steps) each.steps.push_back(step.step);
      each.compute = compute_, each.data_loading = loading_, each.host = std::move(rest);
      each.copies = copies_;
      each.allocation = idle_allocation_, each.launches = idle_launches_;
      if (processor.known()) each.processor = std::move(without_processor);
      each.throttled = !throttle_of(timeline_).text.empty();
    }
    return out;
  }

 private:
  size_t first_after(int64_t time) const {
    return static_cast<size_t>(
        std::partition_point(times_.begin(), times_.end(),
                             [&](const Interval& each) { return each.end <= time; }) -
        times_.begin());
  }
  void add(Interval span, std::vector<double>& to) const {
    for (size_t i = first_after(span.begin); i < times_.size(); ++i) {
      if (times_[i].begin >= span.end) break;
      const int64_t length =
          std::min(span.end, times_[i].end) - std::max(span.begin, times_[i].begin);
      to[i] += static_cast<double>(length) / 1000;
    }
  }
  // Whole, and by when it was issued: how far its GPU is behind its host differs between ranks.
  void add_compute() {
    each_issued_work_of_steps(timeline_, [&](const Work& work, int64_t issued) {
      if (work.kind == WorkClass::communication) return;
      auto& times = work.kind == WorkClass::compute ? compute_ : copies_;
      if (whole_) return add({work.begin, work.end}, times);
      const size_t step =
          first_after(std::clamp(issued, times_.front().begin, times_.back().end - 1));
      times[step] += static_cast<double>(work.end - work.begin) / 1000;
    });
  }
  Measure busy() const {
    Intervals any;
    each_work(timeline_, [&](const Work& work) { any.push_back({work.begin, work.end}); });
    return Measure(cover(std::move(any)));
  }
  ProcessorTime processor_time() const {
    if (timeline_.main_thread == kNone) return {};
    return {*timeline_.process, timeline_.threads[timeline_.main_thread].id};
  }
  double profiling_us(Interval time) const {
    if (timeline_.main_thread == kNone) return 0;
    const Measure& profiling = timeline_.threads[timeline_.main_thread].profiling;
    return static_cast<double>(profiling.inside(time.begin, time.end)) / 1000;
  }
  // Without what the thread then waited for a processor.
  // `busy`: of the GPU; without that, too.
  void add_own(const ProcessorTime& processor, Interval span, std::vector<double>& to,
               const Measure* busy = nullptr) const {
    for (size_t i = first_after(span.begin); i < times_.size(); ++i) {
      if (times_[i].begin >= span.end) break;
      const Interval own{std::max(span.begin, times_[i].begin), std::min(span.end, times_[i].end)};
      const int64_t length = own.length() - processor.waited(own.begin, own.end) -
                             (busy ? busy->inside(own.begin, own.end) : 0);
      to[i] += static_cast<double>(std::max<int64_t>(0, length)) / 1000;
    }
  }
  void add_host() {
    const ProcessorTime processor = processor_time();
    const Measure gpu = busy();
    Call call;
    for (ThreadWalk walk(timeline_, timeline_.main_thread); walk.next(call);) {
      const Interval time{call.begin, call.end};
      const bool waits = call.kind == CallClass::synchronize || call.blocking;
      const bool allocates = call.kind == CallClass::allocate;
      add_own(processor, time, waits ? waiting_ : allocates ? allocation_ : launches_);
      if (waits) continue;
      add_own(processor, time, allocates ? idle_allocation_ : idle_launches_, &gpu);
    }
    for (const Interval& range : timeline_.threads[timeline_.main_thread].data_loading) {
      add_own(processor, range, loading_);
    }
  }

  const Timeline& timeline_;
  const bool whole_;
  Intervals times_;
  std::vector<double> compute_, copies_, loading_, waiting_, allocation_, launches_;
  std::vector<double> idle_allocation_, idle_launches_;  // while the GPU had nothing to do
};

double median_step_us(std::span<const Timeline> timelines) {
  std::vector<double> lengths;
  for (const Timeline& timeline : timelines) {
    const std::vector<double> own = lengths_us(timeline.steps);
    lengths.insert(lengths.end(), own.begin(), own.end());
  }
  return quantile(lengths, 0.5);
}

}  // namespace

RankComparison compare_ranks(std::span<const Timeline> timelines) {
  RankComparison out;
  out.joint_of.resize(timelines.size());
  out.speeds.resize(timelines.size());
  for (const Timeline& each : timelines) out.joint_steps.push_back({0, each.steps.size()});
  if (timelines.size() < 2) return out;
  std::vector<std::function<void()>> tasks;
  std::vector<StepTimes> of_steps(timelines.size());
  const Interval common = common_time(timelines);
  for (size_t i = 0; i < timelines.size(); ++i) {
    tasks.push_back([&, i] {
      TimesOfSteps times(timelines[i], time_of(timelines[i], common));
      out.speeds[i] = times.medians(of_steps[i]);
    });
  }
  side_by_side(std::move(tasks));
  match_collectives(timelines, out, of_steps);
  out.comparable = !out.collectives.empty() && !out.apart;
  if (out.comparable) out.slow = find_slow_ranks(of_steps, median_step_us(timelines));
  for (RankSpeed& speed : out.speeds) {
    if (out.timed > 0) speed.last_pct *= 100 / static_cast<double>(out.timed);
  }
  compare_speeds(out.speeds, median_step_us(timelines));
  return out;
}

}  // namespace gpuprof::analysis
