// SPDX-License-Identifier: Apache-2.0
// Visiting the calls and the work of a timeline, each as a value.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// The work of one stream, in order of begin.
class StreamWalk {
 public:
  using Item = Work;
  StreamWalk(const Timeline& timeline, uint32_t stream)
      : timeline_(&timeline), stream_(stream), at_(timeline.streams[stream].first_event) {}

  // False: there is none left.
  bool next(Work& out) {
    const uint32_t end = timeline_->streams[stream_].end_event;
    while (at_ < end && !timeline_->traits_of(at_).work) ++at_;
    if (at_ >= end) return false;
    out = timeline_->work(at_++, stream_);
    return true;
  }

 private:
  const Timeline* timeline_;
  uint32_t stream_, at_;
};

// The calls of one thread, in order of begin; they do not overlap. Stands at one of them or at the
// end.
class ThreadWalk {
 public:
  using Item = Call;
  ThreadWalk(const Timeline& timeline, uint32_t thread)
      : timeline_(&timeline),
        thread_(thread),
        at_(calls().next(timeline.threads[thread].first_event)) {}

  bool at_end() const { return at_ >= timeline_->threads[thread_].end_event; }
  Call operator*() const { return timeline_->call(at_, thread_); }
  ThreadWalk& operator++() {
    at_ = calls().next(at_ + 1);
    return *this;
  }
  // The end of the call before; `none` where there is none.
  int64_t end_before(int64_t none) const {
    const HostThread& thread = timeline_->threads[thread_];
    if (at_ <= thread.first_event) return none;
    const uint32_t before = thread.calls.last(at_ - 1);
    return before == thread.end_event ? none : timeline_->events().end_of(before);
  }

  bool next(Call& out) {
    if (at_end()) return false;
    out = **this;
    ++*this;
    return true;
  }

 private:
  const Bits& calls() const { return timeline_->threads[thread_].calls; }

  const Timeline* timeline_;
  uint32_t thread_, at_;
};

// Several walks as one, in order of begin; of equal ones, walk by walk.
template <typename Walk>
class MergedWalk {
 public:
  using Item = typename Walk::Item;

  void add(Walk walk) {
    Head head{{}, walk, static_cast<uint32_t>(heads_.size())};
    if (head.walk.next(head.item)) heads_.push_back(std::move(head));
  }
  // Between the last add() and the first look at it.
  void begin() {
    for (size_t i = heads_.size() / 2; i-- > 0;) sink(i);
  }

  bool at_end() const { return heads_.empty(); }
  const Item& operator*() const { return heads_.front().item; }
  const Item* operator->() const { return &heads_.front().item; }
  MergedWalk& operator++() {
    if (!heads_.front().walk.next(heads_.front().item)) {
      std::swap(heads_.front(), heads_.back());
      heads_.pop_back();
    }
    sink(0);
    return *this;
  }

 private:
  struct Head {
    Item item;
    Walk walk;
    uint32_t number;
    bool before(const Head& other) const {
      return item.begin != other.item.begin ? item.begin < other.item.begin : number < other.number;
    }
  };

  // Restores the heap: none of it is before its parent.
  void sink(size_t at) {
    for (size_t child = 2 * at + 1; child < heads_.size(); child = 2 * at + 1) {
      if (child + 1 < heads_.size() && heads_[child + 1].before(heads_[child])) ++child;
      if (!heads_[child].before(heads_[at])) return;
      std::swap(heads_[at], heads_[child]);
      at = child;
    }
  }

  std::vector<Head> heads_;
};

inline MergedWalk<StreamWalk> all_work(const Timeline& timeline) {
  MergedWalk<StreamWalk> out;
  for (uint32_t i = 0; i < timeline.streams.size(); ++i) out.add(StreamWalk(timeline, i));
  out.begin();
  return out;
}

inline MergedWalk<ThreadWalk> all_calls(const Timeline& timeline) {
  MergedWalk<ThreadWalk> out;
  for (uint32_t i = 0; i < timeline.threads.size(); ++i) out.add(ThreadWalk(timeline, i));
  out.begin();
  return out;
}

// Whether there is time between them. Marks of some programs leave validation, or writing a
// checkpoint, to no step.
inline bool leave_time_between(const std::vector<Step>& steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].begin > steps[i - 1].end) return true;
  }
  return false;
}

// Such time. What is before the first step, or after the last, is none.
inline bool is_between_steps(const Timeline& timeline, int64_t time) {
  const std::vector<Step>& steps = timeline.steps;
  return !steps.empty() && time >= steps.front().begin && time < steps.back().end &&
         !timeline.step_at(time);
}

inline Intervals times_between(const std::vector<Step>& steps) {
  Intervals out;
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].begin > steps[i - 1].end) out.push_back({steps[i - 1].end, steps[i].begin});
  }
  return out;
}

// Calls `visit(const Work&)` with all work, stream by stream.
template <typename Visit>
void each_work(const Timeline& timeline, const Visit& visit) {
  Work work;
  for (uint32_t i = 0; i < timeline.streams.size(); ++i) {
    for (StreamWalk walk(timeline, i); walk.next(work);) visit(work);
  }
}

// Calls `visit(const Work&, int64_t issued)` with the work that calls in the steps issued, whenever
// it ran, and when its call began. Of work without a recorded call, when that of the work before it
// on its stream did.
template <typename Visit>
void each_issued_work_of_steps(const Timeline& timeline, const Visit& visit) {
  const bool apart = leave_time_between(timeline.steps);
  for (uint32_t i = 0; i < timeline.streams.size(); ++i) {
    const auto [first, end] = timeline.work_of_steps(i);
    int64_t last = kNotIssued;
    for (uint32_t event = first; event < end; ++event) {
      if (!timeline.traits_of(event).work) continue;
      const Work work = timeline.work(event, i);
      const int64_t issued = timeline.call_begin_of(work);
      if (issued != kNotIssued) last = issued;
      const int64_t at = last == kNotIssued ? work.begin : last;
      if (!apart || !is_between_steps(timeline, at)) visit(work, at);
    }
  }
}

// The same with `visit(const Work&)`.
template <typename Visit>
void each_work_of_steps(const Timeline& timeline, const Visit& visit) {
  if (leave_time_between(timeline.steps)) {
    return each_issued_work_of_steps(timeline, [&](const Work& work, int64_t) { visit(work); });
  }
  for (uint32_t i = 0; i < timeline.streams.size(); ++i) {
    const auto [first, end] = timeline.work_of_steps(i);
    for (uint32_t event = first; event < end; ++event) {
      if (timeline.traits_of(event).work) visit(timeline.work(event, i));
    }
  }
}

// Calls `visit(const Call&)` with all calls, thread by thread.
template <typename Visit>
void each_call(const Timeline& timeline, const Visit& visit) {
  Call call;
  for (uint32_t i = 0; i < timeline.threads.size(); ++i) {
    for (ThreadWalk walk(timeline, i); walk.next(call);) visit(call);
  }
}

}  // namespace gpuprof::analysis
