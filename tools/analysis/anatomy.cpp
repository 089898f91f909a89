// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/anatomy.h"

#include <algorithm>
#include <utility>

namespace gpuprof::analysis {
namespace {

// A call that ends this long before the GPU has run dry is not what it ran dry under.
constexpr int64_t kSlackNs = 2000;
// Work that begins this long after it could have arrived waited for other work.
constexpr int64_t kQueuedNs = 20'000;

// Splits one gap of the GPU by what a thread did in it.
class GapSplitter {
 public:
  GapSplitter(const Timeline& timeline, std::vector<IdlePiece>& out)
      : timeline_(timeline), out_(out) {}

  void split(Interval gap, uint32_t next_work) {
    next_ = next_work;
    const Work* const work = next_work == kNone ? nullptr : &timeline_.works[next_work];
    const Call* const launch = work && work->call != kNone ? &timeline_.calls[work->call] : nullptr;
    opener_ = kNone;
    if (launch && launch->begin + timeline_.launch_latency <= gap.begin - kSlackNs) {
      return add(gap, Part::other, true);  // it was there already
    }
    const uint32_t thread = launch ? launch->thread : timeline_.main_thread;
    if (thread == kNone) return add(gap, Part::other, false);
    walk(timeline_.threads[thread], gap, launch ? std::max(launch->end, gap.begin) : gap.end);
  }

 private:
  void add(Interval time, Part part, bool device) {
    if (time.begin < time.end) out_.push_back({time, part, device, opener_, next_});
  }

  // `issued`: when the thread was done with the call that ends the gap.
  void walk(const HostThread& thread, Interval gap, int64_t issued) {
    const auto calls = timeline_.calls_of(thread);
    auto call = std::partition_point(calls.begin(), calls.end(), [&](const Call& each) {
      return each.end + kSlackNs < gap.begin;
    });
    find_opener(calls, call, gap);
    while (call != calls.end() && call->end < gap.begin) ++call;
    int64_t at = gap.begin;
    int64_t quiet_since = call == calls.begin() ? INT64_MIN : std::prev(call)->end;
    const int64_t end = std::min(gap.end, issued);
    for (; at < end; ++call) {
      const int64_t call_begin = call == calls.end() ? INT64_MAX : call->begin;
      if (call_begin > at) {
        quiet(thread, {at, std::min(call_begin, end)}, {quiet_since, call_begin});
        at = std::min(call_begin, end);
      }
      if (call == calls.end() || at >= end) break;
      const int64_t until = std::min(call->end, end);
      in_range(thread, {at, until}, part_of(*call));
      at = std::max(at, until);
      quiet_since = call->end;
    }
    in_range(thread, {at, gap.end}, after_opener(Part::kernel_launch));
  }

  // The call that waited, or allocated, as the GPU ran dry: until new work comes, it is the cause.
  template <typename Calls, typename At>
  void find_opener(const Calls& calls, At call, Interval gap) {
    for (; call != calls.end() && call->begin <= gap.begin; ++call) {
      if (call->kind == CallClass::issue && !call->blocking) continue;
      opener_ = static_cast<uint32_t>(&*call - timeline_.calls.data());
    }
  }

  Part after_opener(Part usual) const {
    if (opener_ == kNone) return usual;
    return timeline_.calls[opener_].kind == CallClass::allocate ? Part::allocation
                                                                : Part::synchronization;
  }

  Part part_of(const Call& call) const {
    switch (call.kind) {
      case CallClass::allocate: return Part::allocation;
      case CallClass::synchronize: return Part::synchronization;
      case CallClass::issue: break;
    }
    return after_opener(Part::kernel_launch);
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
        const bool long_one = own_end - since > kOwnWorkNs;
        const Interval piece{time.begin, std::min(time.end, load.begin)};
        add(piece, long_one ? Part::other : after_opener(Part::kernel_launch), false);
      }
      if (load.begin >= time.end) break;
      add({std::max(time.begin, load.begin), std::min(time.end, load.end)}, Part::data_loading,
          false);
      time.begin = load.end;
      since = load.end;
      ++range;
    }
  }

  // A call inside a data loader's range is the data loader's.
  void in_range(const HostThread& thread, Interval time, Part part) {
    if (time.begin >= time.end) return;
    const Intervals own = subtract({time}, near(thread.data_loading, time));
    const Intervals loading = subtract({time}, own);
    auto x = own.begin(), y = loading.begin();
    while (x != own.end() || y != loading.end()) {
      if (y == loading.end() || (x != own.end() && x->begin < y->begin)) {
        add(*x++, part, false);
      } else {
        add(*y++, Part::data_loading, false);
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
  std::vector<IdlePiece>& out_;
  uint32_t next_ = kNone, opener_ = kNone;
};

Intervals covered_by(const Timeline& timeline, WorkClass kind, std::vector<Interval> found = {}) {
  for (const Work& work : timeline.works) {
    if (work.kind == kind) found.push_back({work.begin, work.end});
  }
  return cover(std::move(found));
}

// Work that was issued before the window is not recorded. The first recorded work having waited for
// it, the GPU was busy until then.
void add_unrecorded(const Timeline& timeline, std::vector<Interval>& compute) {
  if (timeline.steps.empty() || timeline.works.empty()) return;
  const Work& first = timeline.works.front();
  if (first.call == kNone) return;
  const Call& call = timeline.calls[first.call];
  const int64_t arrived = std::max(call.begin + timeline.launch_latency, call.end);
  if (first.begin - arrived > kQueuedNs) {
    compute.push_back({timeline.steps.front().begin, first.begin});
  }
}

void split_idle(const Timeline& timeline, Interval window, Anatomy& anatomy) {
  GapSplitter splitter(timeline, anatomy.idle);
  uint32_t next = 0;
  const auto count = static_cast<uint32_t>(timeline.works.size());
  for (const Interval& gap : subtract({window}, anatomy.busy)) {
    while (next < count && timeline.works[next].begin < gap.end) ++next;
    // Past the window's end the next work may not have been recorded.
    const bool known = next < count && timeline.works[next].begin == gap.end;
    splitter.split(gap, known ? next : kNone);
  }
}

}  // namespace

std::string_view part_name(Part part) {
  static constexpr std::string_view kNames[kParts] = {
      "compute",       "communication", "transfer",        "data_loading",
      "kernel_launch", "allocation",    "synchronization", "other"};
  return kNames[static_cast<size_t>(part)];
}

Anatomy dissect(const Timeline& timeline) {
  Anatomy out;
  std::vector<Interval> unrecorded;
  add_unrecorded(timeline, unrecorded);
  const Measure compute(covered_by(timeline, WorkClass::compute, std::move(unrecorded)));
  const Intervals comm_all = covered_by(timeline, WorkClass::communication);
  const Intervals copy_all = covered_by(timeline, WorkClass::transfer);
  const Intervals comm = subtract(comm_all, compute.set());
  const Intervals without_copies = unite(compute.set(), comm);
  const Measure busy_parts[kBusyParts] = {compute, Measure(comm),
                                          Measure(subtract(copy_all, without_copies))};
  const Measure overlapped[2] = {Measure(intersect(comm_all, compute.set())),
                                 Measure(intersect(copy_all, compute.set()))};
  out.busy = unite(without_copies, copy_all);
  if (timeline.steps.empty()) return out;
  split_idle(timeline, {timeline.steps.front().begin, timeline.steps.back().end}, out);

  size_t first = 0;
  for (const Step& step : timeline.steps) {
    StepAnatomy anatomy{step.step, step.begin, step.end};
    for (size_t i = 0; i < kBusyParts; ++i) {
      anatomy.parts[i] = busy_parts[i].inside(step.begin, step.end);
    }
    for (size_t i = 0; i < 2; ++i) {
      anatomy.overlapped[i] = overlapped[i].inside(step.begin, step.end);
    }
    while (first < out.idle.size() && out.idle[first].time.end <= step.begin) ++first;
    for (size_t i = first; i < out.idle.size() && out.idle[i].time.begin < step.end; ++i) {
      const IdlePiece& piece = out.idle[i];
      const int64_t inside =
          std::min(piece.time.end, step.end) - std::max(piece.time.begin, step.begin);
      if (inside <= 0) continue;
      anatomy.parts[static_cast<size_t>(piece.part)] += inside;
      if (piece.device) anatomy.device_idle += inside;
    }
    out.steps.push_back(anatomy);
  }
  return out;
}

}  // namespace gpuprof::analysis
