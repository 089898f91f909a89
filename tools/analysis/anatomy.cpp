// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/anatomy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tools/analysis/own_stretch.h"
#include "tools/analysis/processor_time.h"
#include "tools/analysis/step_sums.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// A call that ends this long before the GPU has run dry is not what it ran dry under.
constexpr int64_t kSlackNs = 2000;
// Work that begins this long after it could have arrived waited for something.
constexpr int64_t kQueuedNs = 20'000;
// The first recorded work was this part of the time before its arrival late, or more: it may have
// waited for work that ran since the window's begin. Less is the delay of a first launch.
constexpr int64_t kBacklogPart = 4;

// Splits one gap of the GPU after the other, in order, by what a thread did in it.
class GapSplitter {
 public:
  GapSplitter(const Timeline& timeline, StepSums& out) : timeline_(timeline), out_(out) {
    for (uint32_t i = 0; i < timeline.threads.size(); ++i) {
      near_.emplace_back(timeline, i);
      processor_.push_back({ProcessorTime(*timeline.process, timeline.threads[i].id), INT64_MIN});
    }
  }

  // `next`: the work that ends the gap; null: not known.
  void split(Interval gap, const Work* next) {
    const std::optional<Call> launch = next ? timeline_.call_of(*next) : std::nullopt;
    opener_.reset();
    // The call had not returned as the GPU ran dry, and the work began as it may have handed it
    // over.
    const bool stalled = launch && !launch->blocking && launch->end > gap.begin &&
                         next->begin <= launch->end + timeline_.launch_latency &&
                         is_first_of(*next, *launch);
    if (launch && !stalled && launch->begin + timeline_.launch_latency <= gap.begin - kSlackNs) {
      return out_.add_device_idle(gap);  // it was there already
    }
    const uint32_t thread = launch ? launch->thread : timeline_.main_thread;
    if (thread == kNone) return out_.add(gap, Part::other);
    const int64_t issued = launch ? std::max(launch->end, gap.begin) : gap.end;
    // Issued, it could have begun; what it then waited for is not the launching thread's.
    const int64_t arrival = launch ? launch->begin + timeline_.launch_latency : gap.end;
    const int64_t late = std::min(gap.end, std::max(issued, arrival) + kQueuedNs);
    if (stalled || late == gap.end) return walk(thread, gap, issued);
    walk(thread, {gap.begin, late}, issued);
    out_.add_device_idle({late, gap.end});
  }

 private:
  bool is_first_of(const Work& work, const Call& call) {
    timeline_.works_of(call, works_);
    return !works_.empty() && works_.front().begin == work.begin;
  }

  // What of it the thread worked for the profiler is a part of its own.
  void add(Interval time, Part part) {
    const Intervals& profiling = thread_profiling().set();
    auto range = std::partition_point(profiling.begin(), profiling.end(),
                                      [&](const Interval& each) { return each.end <= time.begin; });
    for (; range != profiling.end() && range->begin < time.end; ++range) {
      add_alone({time.begin, range->begin}, part);
      const int64_t end = std::min(range->end, time.end);
      add_alone({std::max(range->begin, time.begin), end}, Part::profiler);
      time.begin = end;
    }
    add_alone(time, part);
  }

  void add_alone(Interval time, Part part) {
    if (time.begin >= time.end) return;
    out_.add(time, part);
    Processor& own = processor_[thread_];
    if (!own.time.known()) return;
    // A wait before the gap began, while the GPU had work, has made the gap longer all the same.
    const int64_t since =
        std::min(time.begin, std::max(own.time.reading_before(time.begin), own.counted_until));
    const int64_t waited = own.time.waited(since, time.end);
    out_.add_no_processor(time, part, std::min(waited, time.end - time.begin));
    own.counted_until = time.end;
  }

  // `issued`: when the thread was done with the call that ends the gap.
  void walk(uint32_t thread_index, Interval gap, int64_t issued) {
    thread_ = thread_index;
    const HostThread& thread = timeline_.threads[thread_index];
    ThreadWalk& first = near_[thread_index];
    while (!first.at_end() && (*first).end + kSlackNs < gap.begin) ++first;
    ThreadWalk call = first;
    find_opener(call, gap);
    while (!call.at_end() && (*call).end < gap.begin) ++call;
    int64_t at = gap.begin;
    int64_t quiet_since = call.end_before(INT64_MIN);
    const int64_t end = std::min(gap.end, issued);
    for (; at < end; ++call) {
      const std::optional<Call> here = call.at_end() ? std::nullopt : std::optional(*call);
      const int64_t call_begin = here ? here->begin : INT64_MAX;
      if (call_begin > at) {
        quiet(thread, {at, std::min(call_begin, end)}, {quiet_since, call_begin});
        at = std::min(call_begin, end);
      }
      if (!here || at >= end) break;
      const int64_t until = std::min(here->end, end);
      in_call(thread, {at, until}, *here);
      at = std::max(at, until);
      quiet_since = here->end;
    }
    in_range(thread, {at, gap.end}, after_opener(Part::kernel_launch));
  }

  // The call that waited, or allocated, as the GPU ran dry: until new work comes, it is the cause.
  void find_opener(ThreadWalk calls, Interval gap) {
    for (; !calls.at_end(); ++calls) {
      const Call call = *calls;
      if (call.begin > gap.begin) break;
      if (call.kind == CallClass::issue && !call.blocking) continue;
      opener_ = call.kind == CallClass::allocate ? Part::allocation : Part::synchronization;
    }
  }

  Part after_opener(Part usual) const { return opener_.value_or(usual); }

  Part part_of(const Call& call) const {
    switch (call.kind) {
      case CallClass::allocate: return Part::allocation;
      case CallClass::synchronize: return Part::synchronization;
      case CallClass::issue: break;
    }
    return after_opener(Part::kernel_launch);
  }

  // A launch waits while CUPTI is attached.
  void in_call(const HostThread& thread, Interval time, const Call& call) {
    if (timeline_.attaching.empty() || call.kind != CallClass::issue || call.blocking) {
      return in_range(thread, time, part_of(call));
    }
    for (const Interval& attach : near(timeline_.attaching, time)) {
      if (attach.begin > time.begin) {
        in_range(thread, {time.begin, attach.begin}, part_of(call));
        time.begin = attach.begin;
      }
      const int64_t end = std::min(attach.end, time.end);
      add({time.begin, end}, Part::profiler);
      time.begin = end;
    }
    in_range(thread, time, part_of(call));
  }

  // Time between two calls; `whole` is all of it, of which `time` lies in the gap.
  void quiet(const HostThread& thread, Interval time, Interval whole) {
    const Intervals& loading = thread.data_loading;
    auto range = std::partition_point(loading.begin(), loading.end(),
                                      [&](const Interval& each) { return each.end <= time.begin; });
    // Before the first recorded call nothing is known; what can be seen counts.
    int64_t since = whole.begin == INT64_MIN ? time.begin : whole.begin;
    if (range != loading.begin()) since = std::max(since, std::prev(range)->end);
    while (time.begin < time.end) {
      const Interval load = range == loading.end() ? Interval{INT64_MAX, INT64_MAX} : *range;
      const int64_t own_end = std::min(load.begin, whole.end);
      if (load.begin > time.begin) {
        own_time({time.begin, std::min(time.end, load.begin)}, {since, own_end});
      }
      if (load.begin >= time.end) break;
      add({std::max(time.begin, load.begin), std::min(time.end, load.end)}, Part::data_loading);
      time.begin = load.end;
      since = load.end;
      ++range;
    }
  }

  // Outside of calls and of the data loader; `whole` is all of the stretch that `time` lies in.
  // What the framework's operators do between their calls is the issuing of work; so are short
  // stretches around them.
  void own_time(Interval time, Interval whole) {
    const Intervals& dispatch = timeline_.dispatch;
    auto range = std::partition_point(dispatch.begin(), dispatch.end(),
                                      [&](const Interval& each) { return each.end <= time.begin; });
    int64_t since = whole.begin;
    if (range != dispatch.begin()) since = std::max(since, std::prev(range)->end);
    while (time.begin < time.end) {
      const Interval issuing = range == dispatch.end() ? Interval{INT64_MAX, INT64_MAX} : *range;
      const int64_t until = std::min(issuing.begin, whole.end);
      const bool long_one =
          own_length(since, until, processor_[thread_].time, thread_profiling().set()) > kOwnWorkNs;
      const Interval own{time.begin, std::min(time.end, issuing.begin)};
      if (long_one) {
        add_long(own);
      } else {
        add(own, after_opener(Part::kernel_launch));
      }
      if (issuing.begin >= time.end) break;
      add({std::max(time.begin, issuing.begin), std::min(time.end, issuing.end)},
          after_opener(Part::kernel_launch));
      time.begin = since = issuing.end;
      ++range;
    }
  }

  // A stretch of the thread's own. Of another one than the steps run on: while that waited for its
  // data loader, what the other issues next is not late for its own work.
  void add_long(Interval time) {
    if (time.begin >= time.end) return;
    const uint32_t main = timeline_.main_thread;
    if (main == kNone || main == thread_) return add(time, Part::other);
    for (const Interval& load : near(timeline_.threads[main].data_loading, time)) {
      add({time.begin, load.begin}, Part::other);
      const int64_t end = std::min(load.end, time.end);
      add({std::max(load.begin, time.begin), end}, Part::data_loading);
      time.begin = end;
    }
    add(time, Part::other);
  }

  const Measure& thread_profiling() const { return timeline_.threads[thread_].profiling; }

  // A call inside a data loader's range is the data loader's.
  void in_range(const HostThread& thread, Interval time, Part part) {
    if (time.begin >= time.end) return;
    const Intervals loaded = near(thread.data_loading, time);
    if (loaded.empty()) return add(time, part);
    const Intervals own = subtract({time}, loaded);
    const Intervals loading = subtract({time}, own);
    auto x = own.begin(), y = loading.begin();
    while (x != own.end() || y != loading.end()) {
      if (y == loading.end() || (x != own.end() && x->begin < y->begin)) {
        add(*x++, part);
      } else {
        add(*y++, Part::data_loading);
      }
    }
  }

  static Intervals near(const Intervals& set, Interval time) {
    const auto first = std::partition_point(
        set.begin(), set.end(), [&](const Interval& each) { return each.end <= time.begin; });
    auto last = first;
    while (last != set.end() && last->begin < time.end) ++last;
    return {first, last};
  }

  const Timeline& timeline_;
  StepSums& out_;
  std::vector<Work> works_;
  struct Processor {
    ProcessorTime time;
    int64_t counted_until;
  };
  std::vector<Processor> processor_;  // by thread
  uint32_t thread_ = 0;               // that the gap at hand is divided by
  std::vector<ThreadWalk> near_;      // by thread: its first call that may matter to a gap
  std::optional<Part> opener_;        // what the call was, under or after which the GPU ran dry
};

// Whether work without a recorded call was issued before all calls that were recorded: ids are
// given out in order. Not known where no calls of its kind are recorded.
bool was_issued_before(const Timeline& timeline, const Work& work) {
  if (timeline.orphans == timeline.works) return false;
  const EventTable& events = timeline.events();
  bool recorded = false;
  for (auto other = all_work(timeline); !recorded && !other.at_end(); ++other) {
    recorded = other->kind == work.kind && timeline.call_of(*other);
  }
  if (!recorded) return false;
  uint32_t first_id = UINT32_MAX;
  for (const HostThread& thread : timeline.threads) {
    for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
      const uint32_t id = events.correlation_of(i);
      if (id == 0) continue;
      first_id = std::min(first_id, id);
      break;
    }
  }
  const uint32_t id = events.correlation_of(work.event);
  return first_id != UINT32_MAX && id != 0 && id < first_id;
}

// Goes along the work in order of begin and knows until when each class of it covers the time.
class Sweep {
 public:
  Sweep(const Timeline& timeline, IdleTimes* idle, Intervals* device_idle)
      : timeline_(timeline),
        sums_(timeline.steps, idle, device_idle),
        splitter_(timeline, sums_),
        window_{timeline.steps.front().begin, timeline.steps.back().end},
        busy_until_(window_.begin) {
    covered_until_.fill(INT64_MIN);
  }

  std::vector<StepAnatomy> run() {
    auto work = all_work(timeline_);
    at_ = window_.begin;
    if (!work.at_end()) add_begin(*work);
    for (; !work.at_end(); ++work) take(*work);
    add_until(std::max({window_.end, covered_until_[0], covered_until_[1], covered_until_[2]}));
    add_gap(window_.end, nullptr);
    return sums_.take();
  }

 private:
  // Until the first recorded work.
  void add_begin(const Work& first) {
    const Interval unknown = unknown_time(timeline_);
    if (unknown.begin >= unknown.end) {
      at_ = std::min(at_, first.begin);
      return;
    }
    if (unknown.begin > window_.begin) add_gap(unknown.begin, &first);
    sums_.add(unknown, Part::unknown);
    busy_until_ = first.begin;
  }

  void take(const Work& work) {
    // The first of several that begin together is what a gap ended with.
    if (first_of_time_.begin != work.begin || first_of_time_.event == kNone) first_of_time_ = work;
    if (work.begin >= window_.end) {
      // Past the window's end the next work may not have been recorded.
      add_gap(window_.end, work.begin == window_.end ? &first_of_time_ : nullptr);
    } else if (work.begin < work.end) {
      add_gap(work.begin, &first_of_time_);
    }
    if (work.begin == work.end) return;
    add_until(work.begin);
    int64_t& covered = covered_until_[static_cast<size_t>(work.kind)];
    covered = std::max(covered, work.end);
    busy_until_ = std::max(busy_until_, work.end);
  }

  // The gap from where the GPU ran dry; none where it has not.
  void add_gap(int64_t end, const Work* next) {
    if (busy_until_ < end) splitter_.split({busy_until_, end}, next);
    busy_until_ = std::max(busy_until_, end);
  }

  // Busy time up to `time`, where other work begins.
  void add_until(int64_t time) {
    sums_.pass(at_);
    const auto until = [&](WorkClass kind) {
      return std::clamp(covered_until_[static_cast<size_t>(kind)], at_, time);
    };
    const int64_t compute = until(WorkClass::compute);
    const int64_t communication = until(WorkClass::communication);
    const int64_t transfer = until(WorkClass::transfer);
    sums_.add({at_, compute}, Part::compute);
    sums_.add({compute, communication}, Part::communication);
    sums_.add({std::max(compute, communication), transfer}, Part::transfer);
    sums_.add_overlapped({at_, std::min(compute, communication)}, Part::communication);
    sums_.add_overlapped({at_, std::min(compute, transfer)}, Part::transfer);
    at_ = time;
  }

  const Timeline& timeline_;
  StepSums sums_;
  GapSplitter splitter_;
  const Interval window_;
  int64_t at_ = 0;
  std::array<int64_t, kWorkClasses> covered_until_;
  int64_t busy_until_;
  Work first_of_time_{0, 0, kNone, 0, WorkClass::compute};
};

}  // namespace

std::string_view part_name(Part part) {
  static constexpr std::string_view kNames[kParts] = {
      "compute",    "communication",   "transfer", "data_loading", "kernel_launch",
      "allocation", "synchronization", "other",    "profiler",     "unknown"};
  return kNames[static_cast<size_t>(part)];
}

// Work that was issued before the window is not recorded, or only what of it began in the window.
// The first recorded work having waited, perhaps for that, nobody knows what the GPU did.
Interval unknown_time(const Timeline& timeline) {
  if (timeline.steps.empty()) return {0, 0};
  const auto works = all_work(timeline);
  if (works.at_end()) return {0, 0};
  const Work& first = *works;
  const int64_t window = timeline.steps.front().begin;
  const std::optional<Call> call = timeline.call_of(first);
  int64_t arrived = first.begin;
  if (call) {
    arrived = std::max(call->begin + timeline.launch_latency, call->end);
  } else if (was_issued_before(timeline, first)) {
    arrived = window;
  }
  const int64_t late = first.begin - arrived,
                end = std::min(first.begin, timeline.steps.back().end);
  if (late <= kQueuedNs || first.begin <= window) return {window, window};
  const bool brief = late < (arrived - window) / kBacklogPart;
  return {std::min(brief ? arrived : window, end), end};
}

std::vector<StepAnatomy> dissect(const Timeline& timeline, IdleTimes* idle,
                                 Intervals* device_idle) {
  if (timeline.steps.empty()) return {};
  return Sweep(timeline, idle, device_idle).run();
}

}  // namespace gpuprof::analysis
