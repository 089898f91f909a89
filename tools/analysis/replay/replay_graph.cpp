// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay_graph.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "tools/analysis/anatomy.h"
#include "tools/analysis/own_stretch.h"

namespace gpuprof::analysis {
namespace {

constexpr int64_t kNearNs = 20'000;        // "as other work ended"
constexpr int64_t kUnexplainedNs = 5'000;  // a delay worth looking for a reason
constexpr int64_t kCheapCallNs = 2'000;    // what a synchronisation costs that need not wait
constexpr int64_t kLongIssueNs = 50'000;   // a launch that takes this long waits for a full queue
constexpr int64_t kLongFreeNs = 10'000;
constexpr int64_t kOtherThreadNs = 200'000;  // quiet this long, a thread may wait for another
// Work that ended this long before what is still to come explains nothing of it.
constexpr int64_t kForgetNs = 10 * kNearNs;

constexpr FixSet bit(Fix fix) { return static_cast<FixSet>(1u << static_cast<unsigned>(fix)); }

int64_t& of(FixTimes& times, Fix fix) { return times[static_cast<size_t>(fix)]; }

int64_t scaled(int64_t length, double factor) {
  return static_cast<int64_t>(static_cast<double>(length) / std::max(1.0, factor));
}

// Of each stream the newest: what came before it on the stream is over, too.
void add_newest(std::vector<WorkEnd>& out, const WorkEnd& work) {
  if (work.node == kNone) return;
  for (WorkEnd& known : out) {
    if (known.stream != work.stream) continue;
    if (work.end >= known.end) known = work;
    return;
  }
  out.push_back(work);
}

}  // namespace

RankReplay::RankReplay(const Timeline& timeline, const RankComparison& ranks, uint32_t rank,
                       int64_t origin, int64_t begin, const ReplayClocks& clocks,
                       ReplayPiece& piece)
    : timeline_(timeline),
      ranks_(ranks),
      rank_(rank),
      origin_(origin + clocks.ahead[rank]),
      clocks_(clocks),
      piece_(piece),
      between_(times_between(timeline.steps)),
      calls_(all_calls(timeline)),
      last_call_(timeline.threads.size()),
      last_on_stream_(timeline.streams.size()),
      awaited_by_stream_(timeline.streams.size()) {
  for (const HostThread& thread : timeline.threads) {
    processor_.emplace_back(*timeline.process, thread.id);
  }
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> places;  // in timeline.streams
  for (uint32_t i = 0; i < timeline.streams.size(); ++i) {
    const StreamName& name = timeline.streams[i].name;
    places.emplace(std::tuple(name.device, name.context, name.stream), i);
  }
  for (const StreamLink& link : timeline.process->streams) {
    const auto place = places.find({link.device, link.context, link.stream});
    if (place == places.end()) continue;
    const auto [at, fresh] = stream_of_.emplace(link.handle, place->second);
    if (!fresh) at->second = std::min(at->second, place->second);
  }
  if (begin != INT64_MIN && timeline.main_thread != kNone) {
    last_call_[timeline.main_thread] = {begin, piece.add(rank, begin - origin_)};
  }
  if (timeline.orphans) orphans_ = all_work(timeline);
  skip_to_orphan();
}

void RankReplay::advance() {
  if (calls_.at_end()) return add_orphans_before(INT64_MAX);
  const Call call = *calls_;
  add_orphans_before(call.begin);
  add_call(call);
  ++calls_;
}

void RankReplay::skip_to_orphan() {
  while (!orphans_.at_end() && timeline_.call_of(*orphans_)) ++orphans_;
}

void RankReplay::add_orphans_before(int64_t time) {
  for (; !orphans_.at_end() && orphans_->begin < time; skip_to_orphan()) {
    add_work(*orphans_, nullptr, kNone);
    ++orphans_;
  }
}

void RankReplay::add_call(const Call& call) {
  const uint32_t begin = add_call_begin(call);
  note_event_calls(call);
  timeline_.works_of(call, works_);
  own_.clear();
  for (const Work& work : works_) own_.push_back(add_work(work, &call, begin));
  find_awaited(call);
  int64_t last = INT64_MIN;
  for (const WorkEnd& work : awaited_) last = std::max(last, work.end);
  const bool waited = last > call.begin;
  const int64_t length = call.end - call.begin;
  const bool changes = may_change(call.begin);
  const FixSet without = changes ? fixes_without(call) : FixSet{0};
  const uint32_t end = piece_.add(rank_, call.end - origin_);
  const bool issues = changes && call.kind == CallClass::issue;
  // A thread that is woken may have to wait for a processor.
  const int64_t woken = waited ? std::clamp(last, call.begin, call.end) : call.begin;
  const int64_t no_processor = processor_[call.thread].waited(woken, call.end);
  add_call_edge({begin, static_cast<FixSet>(without | (issues ? bit(Fix::kernel_launch) : 0)), true,
                 waited ? std::min(length, kCheapCallNs) : length},
                no_processor);
  if (issues && !waited) add_profiling_edge(call, begin);
  // A copy's call may return before the copy is over (Timeline::waits_for_own_work).
  const int64_t tail = !waited         ? 0
                       : call.blocking ? call.end - last
                                       : std::max<int64_t>(0, call.end - last);
  for (const WorkEnd& work : awaited_) {
    add_call_edge({work.node, without, false, tail}, no_processor);
  }
  last_call_[call.thread] = {call.end, end};
}

// What lies between steps stays as it is: no saving of a step is in it.
bool RankReplay::may_change(int64_t time) const {
  return between_.empty() || !is_between_steps(timeline_, time);
}

// What of a call was the profiler's it takes all the same where issuing work costs nothing.
void RankReplay::add_profiling_edge(const Call& call, uint32_t begin) {
  const int64_t own = timeline_.threads[call.thread].profiling.inside(call.begin, call.end);
  const auto all = static_cast<FixSet>((1u << kFixes) - 1);
  if (own > 0) {
    piece_.add_edge({begin, static_cast<FixSet>(all & ~bit(Fix::kernel_launch)), false, own});
  }
}

// An edge of which `waited` would not be, if the thread had a processor.
void RankReplay::add_call_edge(ReplayEdge edge, int64_t waited) {
  if (waited <= 0 || edge.weight <= 0) return piece_.add_edge(edge);
  const auto all = static_cast<FixSet>((1u << kFixes) - 1);
  const ReplayEdge less{edge.from, static_cast<FixSet>(all & ~bit(Fix::machine_busy)), false,
                        std::max<int64_t>(0, edge.weight - waited)};
  edge.without |= bit(Fix::machine_busy);
  piece_.add_edge(edge);
  piece_.add_edge(less);
}

FixSet RankReplay::fixes_without(const Call& call) const {
  FixSet out = 0;
  if (call.kind == CallClass::allocate) out |= bit(Fix::allocation);
  // A blocking copy to the host is a synchronisation by another name.
  const bool reads =
      call.blocking && !works_.empty() && timeline_.shape(works_.front().event).direction == 2;
  if (call.kind == CallClass::synchronize || reads) out |= bit(Fix::synchronization);
  if (call.blocking) out |= bit(Fix::transfer);
  return out;
}

// After the thread's call before; or, where the thread was quiet for long, after what another
// thread did meanwhile (as PyTorch's main thread waits for the one that runs backward).
uint32_t RankReplay::add_call_begin(const Call& call) {
  const LastCall& own = last_call_[call.thread];
  const bool first = own.node == kNone;
  const LastCall* const other = latest_other_call(call);
  bool follows_other = other && first;
  if (other && !first && call.begin - own.end > kOtherThreadNs) {
    // Past its data loader it waited for that, whatever another thread did at the end.
    follows_other = other->end > own.end && loading(call.thread, own.end, other->end) == 0 &&
                    (call.begin - other->end) * 2 < unloaded(call, own.end);
  }
  const uint32_t begin = piece_.add(rank_, call.begin - origin_);
  if (follows_other) piece_.add_edge({other->node, 0, false, 0});
  piece_.add_edge({own.node, 0, false, 0});
  if (follows_other || !first) {
    const int64_t since = follows_other ? other->end : own.end;
    piece_.set_own(own_times(quiet_time(call, since)));
  }
  return begin;
}

// How long the thread was in its data loader.
int64_t RankReplay::loading(uint32_t thread, int64_t begin, int64_t end) const {
  const Intervals& ranges = timeline_.threads[thread].data_loading;
  int64_t out = 0;
  for (auto range = std::partition_point(ranges.begin(), ranges.end(),
                                         [&](const Interval& each) { return each.end <= begin; });
       range != ranges.end() && range->begin < end; ++range) {
    out += std::min(range->end, end) - std::max(range->begin, begin);
  }
  return out;
}

// What its thread did before the call, but load data and work for the profiler.
int64_t RankReplay::unloaded(const Call& call, int64_t since) const {
  return call.begin - since - loading(call.thread, since, call.begin) -
         timeline_.threads[call.thread].profiling.inside(since, call.begin);
}

const RankReplay::LastCall* RankReplay::latest_other_call(const Call& call) const {
  const LastCall* found = nullptr;
  for (uint32_t thread = 0; thread < last_call_.size(); ++thread) {
    const LastCall& last = last_call_[thread];
    if (thread == call.thread || last.node == kNone || last.end > call.begin) continue;
    if (!found || last.end > found->end) found = &last;
  }
  return found;
}

RankReplay::QuietTime RankReplay::quiet_time(const Call& call, int64_t since) const {
  QuietTime out{};
  const Intervals& loading = timeline_.threads[call.thread].data_loading;
  int64_t at = since;
  const auto stretch = [&](int64_t end) { add_stretch({at, end}, call.thread, out); };
  for (auto range = std::partition_point(loading.begin(), loading.end(),
                                         [&](const Interval& each) { return each.end <= since; });
       range != loading.end() && range->begin < call.begin; ++range) {
    stretch(range->begin);
    const int64_t end = std::min(range->end, call.begin);
    add_quiet({std::max(range->begin, since), end}, call.thread, out.loading, out);
    at = end;
  }
  stretch(call.begin);
  return out;
}

// Counts it in `share`, but for what lies between steps and what the thread worked for the
// profiler.
void RankReplay::add_quiet(Interval time, uint32_t thread, QuietTime::Share& share,
                           QuietTime& out) const {
  const Measure& profiled = timeline_.threads[thread].profiling;
  const auto add = [&](int64_t end) {
    if (end <= time.begin) return;
    const int64_t kept = &share == &out.loading ? 0 : profiled.inside(time.begin, end);
    share.all += end - time.begin - kept;
    share.waited += processor_[thread].waited(time.begin, end);
    out.kept += kept;
  };
  for (auto gap =
           std::partition_point(between_.begin(), between_.end(),
                                [&](const Interval& each) { return each.end <= time.begin; });
       gap != between_.end() && gap->begin < time.end; ++gap) {
    add(gap->begin);
    const int64_t end = std::min(gap->end, time.end);
    out.kept += end - std::max(gap->begin, time.begin);
    time.begin = end;
  }
  add(time.end);
}

// A long stretch of a thread beside the one that steps run on: meanwhile that may wait for data.
void RankReplay::add_own(Interval time, uint32_t thread, QuietTime& out) const {
  const uint32_t main = timeline_.main_thread;
  if (main != kNone && main != thread) {
    const Intervals& loading = timeline_.threads[main].data_loading;
    for (auto range =
             std::partition_point(loading.begin(), loading.end(),
                                  [&](const Interval& each) { return each.end <= time.begin; });
         range != loading.end() && range->begin < time.end; ++range) {
      if (range->begin > time.begin) add_quiet({time.begin, range->begin}, thread, out.own, out);
      const int64_t end = std::min(range->end, time.end);
      add_quiet({std::max(range->begin, time.begin), end}, thread, out.loading, out);
      time.begin = end;
    }
  }
  add_quiet(time, thread, out.own, out);
}

// As GapSplitter::own_time of the anatomy counts it.
void RankReplay::add_stretch(Interval time, uint32_t thread, QuietTime& out) const {
  const ProcessorTime& processor = processor_[thread];
  const Intervals& profiling = timeline_.threads[thread].profiling.set();
  const Intervals& dispatch = timeline_.dispatch;
  const auto own = [&](int64_t end) {
    if (end <= time.begin) return;
    if (own_length(time.begin, end, processor, profiling) > kOwnWorkNs) {
      add_own({time.begin, end}, thread, out);
    } else {
      add_quiet({time.begin, end}, thread, out.brief, out);
    }
  };
  for (auto range =
           std::partition_point(dispatch.begin(), dispatch.end(),
                                [&](const Interval& each) { return each.end <= time.begin; });
       range != dispatch.end() && range->begin < time.end; ++range) {
    own(range->begin);
    const int64_t end = std::min(range->end, time.end);
    add_quiet({std::max(range->begin, time.begin), end}, thread, out.brief, out);
    time.begin = end;
  }
  own(time.end);
}

FixTimes RankReplay::own_times(const QuietTime& quiet) const {
  const int64_t all = quiet.loading.all + quiet.brief.all + quiet.own.all + quiet.kept;
  FixTimes out = same_times(all);
  of(out, Fix::data_loading) -= quiet.loading.with_processor();
  of(out, Fix::kernel_launch) -= quiet.brief.with_processor();
  of(out, Fix::host_work) -= quiet.own.with_processor();
  of(out, Fix::machine_busy) -= std::min(quiet.waited(), all);
  const RankSpeed& speed = ranks_.speeds[rank_];
  of(out, Fix::straggler) = scaled(quiet.loading.all, speed.data_loading) +
                            scaled(quiet.brief.all, speed.host) +
                            scaled(quiet.own.all, speed.host) + quiet.kept;
  return out;
}

void RankReplay::note_event_calls(const Call& call) {
  const Shape& shape = timeline_.shape(call.event);
  if (shape.kind != Kind::event && shape.kind != Kind::stream) return;
  if (shape.flags & kFlagCaptured) return;
  const Process& process = *timeline_.process;
  const uint64_t handle = process.extras[process.events.extra_of(call.event)].address2;
  if (!handle) return;
  const std::string_view name = timeline_.trace->text(shape.name);
  const auto stream = stream_of_.find(shape.stream_handle);
  if (stream == stream_of_.end()) return;
  if (shape.kind == Kind::event && name.find("Record") != std::string_view::npos) {
    std::vector<WorkEnd>& ends = recorded_[handle];
    ends.clear();
    add_ends_of_stream(stream->second, ends);
  } else if (shape.kind == Kind::stream && name.find("Wait") != std::string_view::npos) {
    const auto known = recorded_.find(handle);
    if (known == recorded_.end()) return;
    for (const WorkEnd& work : known->second) {
      add_newest(awaited_by_stream_[stream->second], work);
    }
  }
}

// What has to be over before anything that the stream is given now: its last work, and what it has
// been told to wait for since.
void RankReplay::add_ends_of_stream(uint32_t stream, std::vector<WorkEnd>& out) const {
  add_newest(out, last_on_stream_[stream]);
  for (const WorkEnd& awaited : awaited_by_stream_[stream]) add_newest(out, awaited);
}

WorkEnd RankReplay::add_work(const Work& work, const Call* call, uint32_t call_begin) {
  const uint32_t begin = piece_.add(rank_, work.begin - origin_);
  int64_t ready = INT64_MIN;
  // Work that did begin earlier than that could do so again.
  const auto after = [&](uint32_t from, int64_t weight, int64_t time) {
    piece_.add_edge({from, 0, false, weight + std::min<int64_t>(0, work.begin - time)});
    ready = std::max(ready, std::min(time, work.begin));
  };
  if (call) {
    after(call_begin, timeline_.launch_latency, call->begin + timeline_.launch_latency);
  }
  WorkEnd& before = last_on_stream_[work.stream];
  if (before.node != kNone) after(before.node, 0, before.end);
  for (const WorkEnd& awaited : awaited_by_stream_[work.stream]) {
    if (awaited.end <= work.begin + kCheapCallNs) after(awaited.node, 0, awaited.end);
  }
  awaited_by_stream_[work.stream].clear();
  if (ready == INT64_MIN || work.begin - ready > kUnexplainedNs) {
    if (const WorkEnd* const reason = ended_just_before(work)) after(reason->node, 0, reason->end);
  }
  if (ready != INT64_MIN) {
    FixTimes own = same_times(work.begin - ready);
    if (call && may_change(call->begin)) {
      of(own, Fix::kernel_launch) -= held_back(work, *call, ready);
    }
    piece_.set_own(own);
  }
  before = {work.end, work.stream, add_work_end(work, call ? call->begin : work.begin, begin)};
  remember(before);
  return before;
}

// How long work was kept from its beginning since `ready` by its call, which had not handed it
// over: it loaded a module, waited for a lock of the driver's.
int64_t RankReplay::held_back(const Work& work, const Call& call, int64_t ready) const {
  if (call.kind != CallClass::issue || call.blocking) return 0;
  if (work.begin > call.end + timeline_.launch_latency) return 0;  // something else, too
  // What a call of several (a graph) caused later waited for the first.
  if (works_.front().begin < work.begin) return 0;
  const int64_t delay = work.begin - std::max(ready, call.begin + timeline_.launch_latency);
  return delay > kUnexplainedNs ? delay : 0;
}

// What a rank does first in a collective waits for the others; its other pieces follow that. Copies
// wait for nobody: the time between them stays as it was recorded. Null: it is one of these.
const JointCollective* RankReplay::begins_part(const JointCollective& collective,
                                               uint32_t event) const {
  if (collective.by_copies) return nullptr;
  const auto& parts = collective.parts;  // in order of rank
  auto part = std::partition_point(parts.begin(), parts.end(),
                                   [&](const CollectivePart& each) { return each.rank < rank_; });
  while (part != parts.end() && part->rank == rank_ && part->event != event) ++part;
  return part != parts.end() && part->rank == rank_ ? &collective : nullptr;
}

uint32_t RankReplay::add_work_end(const Work& work, int64_t issued, uint32_t begin) {
  int64_t alone = work.begin;  // from when on it waits for nobody
  uint32_t after = begin;
  if (work.kind == WorkClass::communication && !ranks_.apart) {
    const auto& joints = ranks_.joint_of[rank_];
    if (const auto found = joints.find(work.event); found != joints.end()) {
      const JointCollective* const joint =
          begins_part(ranks_.collectives[found->second], work.event);
      if (joint) {
        after = piece_.arrive(found->second, *joint, rank_, begin);
        alone = clocks_.last_begins[found->second] + clocks_.ahead[rank_];
      }
    }
  }
  const uint32_t end = piece_.add(rank_, work.end - origin_);
  piece_.add_edge({after, 0, false, 0});
  piece_.set_own(lengths(work, alone, issued));
  const std::vector<Step>& steps = timeline_.steps;
  while (step_ < steps.size() && steps[step_].end <= issued) ++step_;
  if (step_ < steps.size() && steps[step_].begin <= issued) {
    piece_.set_step(static_cast<uint32_t>(step_));
  }
  return end;
}

FixTimes RankReplay::lengths(const Work& work, int64_t begin, int64_t issued) const {
  FixTimes out = same_times(std::max<int64_t>(0, work.end - begin));
  if (!may_change(issued)) return out;
  switch (work.kind) {
    case WorkClass::compute:
      of(out, Fix::straggler) = scaled(out[0], ranks_.speeds[rank_].compute);
      break;
    case WorkClass::communication: of(out, Fix::communication) = 0; break;
    case WorkClass::transfer: of(out, Fix::transfer) = 0; break;
  }
  return out;
}

// Keeps `recent_` in order; what comes is mostly the last.
void RankReplay::remember(const WorkEnd& work) {
  if (recent_.size() >= recent_limit_) forget_old();
  auto at = recent_.end();
  while (at != recent_.begin() && std::prev(at)->end > work.end) --at;
  recent_.insert(at, work);
}

// Twice as many as are left may come before it is done again.
void RankReplay::forget_old() {
  int64_t next = INT64_MAX;  // nothing that is to come begins earlier
  if (!calls_.at_end()) next = calls_->begin;
  if (!orphans_.at_end()) next = std::min(next, orphans_->begin);
  if (next == INT64_MAX) return;
  const auto keep = std::partition_point(recent_.begin(), recent_.end(), [&](const WorkEnd& work) {
    return work.end < next - kForgetNs;
  });
  recent_.erase(recent_.begin(), keep);
  recent_limit_ = std::max<size_t>(64, 2 * recent_.size());
}

// Work of another stream that ended as this one began.
const WorkEnd* RankReplay::ended_just_before(const Work& work) const {
  auto at = std::partition_point(recent_.begin(), recent_.end(),
                                 [&](const WorkEnd& each) { return each.end <= work.begin; });
  while (at != recent_.begin()) {
    --at;
    if (work.begin - at->end > kNearNs) break;
    if (at->stream != work.stream) return &*at;
  }
  return nullptr;
}

const WorkEnd* RankReplay::ended_with(const Call& call) const {
  const auto after = std::partition_point(
      recent_.begin(), recent_.end(), [&](const WorkEnd& each) { return each.end <= call.end; });
  if (after == recent_.begin()) return nullptr;
  const WorkEnd& found = *std::prev(after);
  return call.end - found.end <= kNearNs && found.end > call.begin ? &found : nullptr;
}

void RankReplay::find_awaited(const Call& call) {
  awaited_.clear();
  const int64_t length = call.end - call.begin;
  if (call.blocking) {
    add_awaited(call, own_);
  } else if (call.kind == CallClass::synchronize) {
    find_synchronized(call);
  } else if (call.kind == CallClass::allocate && length > kLongFreeNs) {
    add_awaited(call, last_on_stream_);
  } else if (call.kind == CallClass::issue && length > kLongIssueNs) {
    // At a full queue's end its own work has yet to begin.
    const bool begun = !works_.empty() && works_.front().begin <= call.end;
    const WorkEnd* const work = begun ? nullptr : ended_with(call);
    if (work) awaited_.push_back(*work);
  }
}

// What really was over when the call ended.
void RankReplay::add_awaited(const Call& call, std::span<const WorkEnd> works) {
  for (const WorkEnd& work : works) {
    const bool over = work.end <= call.end + kCheapCallNs || call.blocking;
    if (work.node != kNone && over) awaited_.push_back(work);
  }
}

void RankReplay::find_synchronized(const Call& call) {
  const Shape& shape = timeline_.shape(call.event);
  const std::string_view name = timeline_.trace->text(shape.name);
  std::vector<WorkEnd> ends;
  if (name.find("Stream") != std::string_view::npos) {
    const auto stream = stream_of_.find(shape.stream_handle);
    if (stream != stream_of_.end()) {
      add_ends_of_stream(stream->second, ends);
      return add_awaited(call, ends);
    }
  } else if (name.find("Event") != std::string_view::npos) {
    const Process& process = *timeline_.process;
    const auto known = recorded_.find(process.extras[process.events.extra_of(call.event)].address2);
    if (known != recorded_.end()) return add_awaited(call, known->second);
  }
  add_awaited(call, last_on_stream_);
}

}  // namespace gpuprof::analysis
