// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/timeline.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "formats/core/names.h"
#include "formats/core/own_time.h"
#include "formats/views/slices.h"
#include "tools/analysis/found_steps.h"
#include "tools/analysis/kernel_families.h"
#include "tools/analysis/main_thread.h"
#include "tools/analysis/side_by_side.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

constexpr uint32_t kPageable = 1;  // CUpti_ActivityMemoryKind

CallClass class_of(Kind kind) {
  switch (kind) {
    case Kind::alloc:
    case Kind::dealloc: return CallClass::allocate;
    case Kind::sync: return CallClass::synchronize;
    default: return CallClass::issue;
  }
}

bool communicates(const Shape& shape, std::string_view label) {
  const bool of_collective = shape.detail != StringIndex::empty && shape.kind == Kind::gpu_kernel;
  return names_communication(label) || (of_collective && !names_local_part(label));
}

ShapeTraits traits_of(const Trace& trace, const Shape& shape) {
  const std::string_view label = trace.text(shape.label);
  ShapeTraits out;
  out.call = is_call_kind(shape.kind);
  out.work = is_stream_work(shape.kind) && drawable(shape);
  if (out.call) {
    out.call_class = class_of(shape.kind);
    out.copy_call = shape.kind == Kind::copy;
    out.waits = trace.text(shape.name).find("Async") == std::string_view::npos;
  } else if (out.work) {
    const bool copies = shape.kind == Kind::gpu_copy || shape.kind == Kind::gpu_set;
    out.work_class = copies                       ? WorkClass::transfer
                     : communicates(shape, label) ? WorkClass::communication
                                                  : WorkClass::compute;
    out.pageable = shape.source_kind == kPageable || shape.destination_kind == kPageable;
    out.tensor_cores = uses_tensor_cores(label);
  } else {
    out.loads_data = names_data_loading(label);
    out.steps_optimizer = names_optimizer_step(label);
    out.dispatches = shape.kind == Kind::op && names_framework_operator(label);
  }
  return out;
}

// Of a trace whose file was cut off: the time of which no GPU work and no call is missing, as far
// as it is known. Its window ends where events of its end may be missing (formats/kineto_reader).
Interval whole_stretch(const Timeline& timeline) {
  const Process& process = *timeline.process;
  int64_t begin = INT64_MAX, end = INT64_MIN, joined = INT64_MIN;
  each_work(timeline, [&](const Work& work) {
    begin = std::min(begin, work.begin), end = std::max(end, work.end);
    if (timeline.call_begin_of(work) != kNotIssued) joined = std::max(joined, work.end);
  });
  for (const HostThread& thread : timeline.threads) {
    for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
      if (!timeline.traits_of(i).call) continue;
      begin = std::min(begin, process.events.begin_of(i));
      break;
    }
  }
  return {begin, std::min(joined == INT64_MIN ? end : joined, process.window_end)};
}

}  // namespace

bool is_profiling(uint32_t overhead_type) { return is_profiling_overhead(overhead_type); }

// What the work of a stretch of a stream tells beside itself. Long streams have several, so that
// no thread is left with one stream alone.
struct StreamSums {
  uint32_t stream, first_event, end_event;
  int64_t last_end = INT64_MIN;  // of all work, that of stretches before this one too
  size_t works = 0, orphans = 0, transfers = 0;
  std::deque<uint32_t> latencies;  // of launches that found the stream idle, ns, at most 4 s
};
constexpr uint32_t kStretch = 500'000;  // events

class TimelineBuilder {
 public:
  TimelineBuilder(const Trace& trace, const Process& process,
                  std::shared_ptr<const TraitsOfShapes> traits)
      : process_(process) {
    out_.trace = &trace;
    out_.process = &process;
    out_.traits = std::move(traits);
    const std::span<const Step> steps = process.window_steps();
    out_.steps.assign(steps.begin(), steps.end());
    for (const Lane& lane : process.lanes) {
      const uint32_t end = lane.first_event + lane.event_count;
      if (lane.type == LaneType::thread) {
        out_.threads.push_back(
            {lane.thread_id, lane.first_event, end, {}, 0, {}, {}, Measure{{}}, 0});
      } else if (lane.type == LaneType::stream) {
        out_.streams.push_back({{lane.device, lane.context, lane.stream}, lane.first_event, end});
      }
    }
    for (uint32_t i = 0; i < out_.streams.size(); ++i) {
      const Stream& stream = out_.streams[i];
      for (uint32_t at = stream.first_event; at < stream.end_event; at += kStretch) {
        sums_.push_back({i, at, std::min(at + kStretch, stream.end_event), INT64_MIN, 0, 0, 0, {}});
      }
    }
  }

  // First all that add_calls() gives, then all of add_sums(); each may run beside the others.
  void add_calls(std::vector<std::function<void()>>& tasks) {
    for (HostThread& thread : out_.threads) tasks.push_back([&] { read_thread(thread); });
    for (StreamSums& sums : sums_) tasks.push_back([&] { find_last_end(sums); });
    if (!process_.collective_kernels.empty()) tasks.push_back([this] { mark_collectives(); });
  }
  void add_sums(std::vector<std::function<void()>>& tasks) {
    for (size_t i = 1; i < sums_.size(); ++i) {
      if (sums_[i].stream != sums_[i - 1].stream) continue;
      sums_[i].last_end = std::max(sums_[i].last_end, sums_[i - 1].last_end);
    }
    for (size_t i = 0; i < sums_.size(); ++i) {
      const bool first = i == 0 || sums_[i].stream != sums_[i - 1].stream;
      tasks.push_back([this, i, since = first ? INT64_MIN : sums_[i - 1].last_end] {
        sum_up(sums_[i], since);
      });
    }
  }
  Timeline finish() {
    size_t transfers = 0;
    for (const StreamSums& sums : sums_) {
      out_.works += sums.works;
      out_.orphans += sums.orphans;
      transfers += sums.transfers;
    }
    out_.gpu_timed = out_.works > (process_.gpu_times_missing.empty() ? 0 : transfers);
    for (const HostThread& thread : out_.threads) {
      if (!thread.dispatch.empty()) out_.dispatch = unite(out_.dispatch, thread.dispatch);
    }
    find_profiling();
    find_launch_latency();
    out_.main_thread = find_main_thread(out_);
    if (out_.steps.empty() || is_bracketed(process_) || goes_by_clock(process_)) look_inside(out_);
    if (out_.nested_source.empty()) join_waits(out_);
    if (process_.recovered || cut_off()) drop_untimed_steps();
    return std::move(out_);
  }

 private:
  // A captured call started no work, and costs the step nothing but its own time.
  void read_thread(HostThread& thread) const {
    const EventTable& events = process_.events;
    thread.calls = Bits(thread.first_event, thread.end_event);
    std::vector<Interval> loading;
    int64_t open_end = INT64_MIN;
    for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
      const ShapeTraits& traits = out_.traits_of(i);
      thread.optimizer_steps += traits.steps_optimizer;
      if (traits.loads_data) loading.push_back({events.begin_of(i), events.end_of(i)});
      if (!traits.call || events.begin_of(i) < open_end) continue;
      thread.calls.set(i);
      ++thread.call_count;
      open_end = events.end_of(i);
    }
    thread.data_loading = cover(std::move(loading));
    thread.dispatch = dispatch_of(thread);
  }

  // Its outermost operators of the framework in which it issues work. Others compute on the host.
  Intervals dispatch_of(const HostThread& thread) const {
    const EventTable& events = process_.events;
    Intervals out;
    Interval open{0, INT64_MIN};
    bool issues = false;
    const auto close = [&] {
      if (issues && open.begin < open.end) out.push_back(open);
      issues = false;
    };
    for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
      const ShapeTraits& traits = out_.traits_of(i);
      const int64_t begin = events.begin_of(i);
      if (traits.dispatches && begin >= open.end) {
        close();
        open = {begin, events.end_of(i)};
      }
      issues = issues || (traits.call && traits.call_class == CallClass::issue && begin < open.end);
    }
    close();
    return out;
  }

  // Of dumps. CUPTI's own records count where they name a thread of the dump.
  void find_profiling() {
    if (process_.source != Source::dump) return;
    std::map<uint64_t, std::vector<Interval>> by_thread;
    std::vector<Interval> attaching;
    const EventTable& events = process_.events;
    for (const Lane& lane : process_.lanes) {
      if (lane.type != LaneType::overhead) continue;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        const Shape& shape = out_.shape(i);
        if (!is_profiling(shape.cupti_type)) continue;
        const Interval time{events.begin_of(i), events.end_of(i)};
        if (shape.cupti_type == static_cast<uint32_t>(OwnTime::attach)) attaching.push_back(time);
        if (shape.object_kind != kThreadObject) continue;
        by_thread[process_.extras[events.extra_of(i)].address].push_back(time);
      }
    }
    out_.attaching = cover(std::move(attaching));
    for (HostThread& thread : out_.threads) {
      const auto found = by_thread.find(thread.id);
      if (found != by_thread.end()) thread.profiling = Measure(cover(std::move(found->second)));
    }
  }

  void mark_collectives() {
    Bits marks(0, static_cast<uint32_t>(process_.events.size()));
    for (const CollectiveKernel& pair : process_.collective_kernels) marks.set(number(pair.kernel));
    out_.of_collectives = std::move(marks);
  }

  void find_last_end(StreamSums& sums) const {
    for (uint32_t i = sums.first_event; i < sums.end_event; ++i) {
      if (out_.traits_of(i).work)
        sums.last_end = std::max(sums.last_end, process_.events.end_of(i));
    }
  }

  // `idle_since`: when the stream's work before this stretch was done. Before the first recorded
  // work there may have been other, which it waited for.
  void sum_up(StreamSums& sums, int64_t idle_since) const {
    for (uint32_t i = sums.first_event; i < sums.end_event; ++i) {
      if (!out_.traits_of(i).work) continue;
      const Work work = out_.work(i, sums.stream);
      ++sums.works;
      sums.transfers += work.kind == WorkClass::transfer;
      const int64_t issued = out_.call_begin_of(work);
      if (issued == kNotIssued) {
        ++sums.orphans;
      } else if (work.kind != WorkClass::transfer && idle_since != INT64_MIN &&
                 issued >= idle_since && work.begin > issued) {
        sums.latencies.push_back(
            static_cast<uint32_t>(std::min<int64_t>(work.begin - issued, UINT32_MAX)));
      }
      idle_since = std::max(idle_since, work.end);
    }
  }

  // Of kernels that found their stream idle, the fifth percentile, so that one bad time stamp does
  // not decide. Where every kernel had to wait for others, or for something else (no launch takes
  // so long), the usual latency of a launch.
  void find_launch_latency() {
    constexpr int64_t kUsual = 5000, kUnusual = 20'000, kMost = 100'000;
    std::deque<uint32_t> found;
    for (StreamSums& sums : sums_) {
      if (sums.latencies.size() > found.size()) found.swap(sums.latencies);
      found.insert(found.end(), sums.latencies.begin(), sums.latencies.end());
      std::deque<uint32_t>().swap(sums.latencies);
    }
    int64_t latency = fifth_percentile(found, kUsual);
    if (latency > kUnusual) latency = fifth_percentile(latencies_alone(), kUsual);
    out_.launch_latency = latency > kMost ? kUsual : latency;
  }

  static int64_t fifth_percentile(std::deque<uint32_t> found, int64_t otherwise) {
    if (found.empty()) return otherwise;
    const auto at = found.begin() + static_cast<int64_t>(found.size() / 20);
    std::nth_element(found.begin(), at, found.end());
    return *at;
  }

  // As sum_up() finds them, without work that began as that of another stream ended: it will have
  // waited for that.
  std::deque<uint32_t> latencies_alone() const {
    constexpr int64_t kNear = 20'000;
    std::deque<uint32_t> out;
    std::vector<int64_t> idle_since(out_.streams.size(), INT64_MIN);
    for (auto works = all_work(out_); !works.at_end(); ++works) {
      const Work& work = *works;
      int64_t& own = idle_since[work.stream];
      const int64_t issued = out_.call_begin_of(work);
      const bool alone =
          std::none_of(idle_since.begin(), idle_since.end(), [&](const int64_t& end) {
            return &end != &own && end <= work.begin && work.begin - end <= kNear;
          });
      if (alone && work.kind != WorkClass::transfer && own != INT64_MIN && issued != kNotIssued &&
          issued >= own && work.begin > issued) {
        out.push_back(static_cast<uint32_t>(std::min<int64_t>(work.begin - issued, UINT32_MAX)));
      }
      own = std::max(own, work.end);
    }
    return out;
  }

  bool cut_off() const {
    return process_.completeness == Completeness::truncated && !process_.recovered;
  }

  // When by stream handle the last call with a time was made.
  std::map<uint64_t, int64_t> last_timed_calls() const {
    std::map<uint64_t, int64_t> out;
    each_work(out_, [&](const Work& work) {
      const uint32_t call = out_.call_event_of(work);
      if (call == kNone) return;
      const int64_t begin = process_.events.begin_of(call);
      int64_t& last = out.try_emplace(out_.shape(call).stream_handle, begin).first->second;
      last = std::max(last, begin);
    });
    return out;
  }

  int64_t first_untimed_launch(const std::map<uint64_t, int64_t>& last_call) const {
    int64_t untimed = INT64_MAX;
    for (const HostThread& thread : out_.threads) {
      for (uint32_t i = thread.first_event; i < thread.end_event; ++i) {
        const Shape& shape = out_.shape(i);
        if ((shape.kind != Kind::launch && shape.kind != Kind::set) || !thread.calls.test(i))
          continue;
        const auto last = last_call.find(shape.stream_handle);
        const int64_t begin = process_.events.begin_of(i);
        if (last != last_call.end() && begin > last->second) untimed = std::min(untimed, begin);
      }
    }
    return untimed;
  }

  // What CUPTI still had when the process was killed is lost, as is what a file that was cut off
  // had behind its end: calls have no work, steps look idle. By stream, since one may be far behind
  // the others. Of a file that was cut the calls may be lost with the work: then a step ends
  // without it, or has none at all.
  void drop_untimed_steps() {
    constexpr int64_t kMostMissing = 20;  // one of so many parts of a step
    const std::map<uint64_t, int64_t> last_timed = last_timed_calls();
    if (last_timed.empty() && !(cut_off() && out_.works > 0)) return;
    const int64_t untimed = first_untimed_launch(last_timed);
    const Interval whole = cut_off() ? whole_stretch(out_) : Interval{INT64_MIN, INT64_MAX};
    const auto lacks_work = [&](const Step& step) {
      const int64_t missing = step.end - std::max(step.begin, whole.end);
      return step.end > untimed || step.end <= whole.begin ||
             missing * kMostMissing > step.end - step.begin;
    };
    out_.untimed_steps += std::erase_if(out_.steps, lacks_work);
  }

  const Process& process_;
  Timeline out_{};
  std::vector<StreamSums> sums_;
};

std::vector<Timeline> make_timelines(const Trace& trace) {
  auto traits = std::make_shared<TraitsOfShapes>();
  for (const Shape& shape : trace.shapes) traits->push_back(traits_of(trace, shape));
  std::deque<TimelineBuilder> builders;
  for (const Process& process : trace.processes) {
    if (!process.is_data_worker()) builders.emplace_back(trace, process, traits);
  }
  std::vector<std::function<void()>> tasks;
  for (TimelineBuilder& builder : builders) builder.add_calls(tasks);
  side_by_side(std::exchange(tasks, {}));
  for (TimelineBuilder& builder : builders) builder.add_sums(tasks);
  side_by_side(std::exchange(tasks, {}));
  std::vector<Timeline> out(builders.size());
  for (size_t i = 0; i < builders.size(); ++i) {
    tasks.push_back([&out, &builders, i] { out[i] = builders[i].finish(); });
  }
  side_by_side(std::move(tasks));
  compare_found_steps(out);
  leave_out_undivided(out);
  keep_found_steps_apart(out);
  return out;
}

void look_at_whole_windows(std::vector<Timeline>& timelines) {
  const auto any = [&](auto holds) {
    return std::any_of(timelines.begin(), timelines.end(), holds);
  };
  const auto has_steps = [](const Timeline& t) { return !t.steps.empty() || t.untimed_steps > 0; };
  if (any(has_steps)) return;
  const bool works = any([](const Timeline& t) { return t.works > 0; });
  for (Timeline& timeline : timelines) {
    const Process& process = *timeline.process;
    if (works ? timeline.works == 0 : process.events.size() == 0) continue;
    // What calls of the end caused is lost with it.
    const bool whole = process.completeness == Completeness::complete && !process.recovered;
    int64_t end = whole || !works ? process.window_end : process.window_begin;
    each_work(timeline, [&](const Work& work) { end = std::max(end, work.end); });
    // Before that, where a file that was cut lacks work anywhere.
    if (works && end > process.window_end && process.source == Source::kineto) {
      const int64_t all = end - process.window_begin;
      end = process.window_end;
      if (2 * (end - process.window_begin) < all) continue;
    }
    if (end <= process.window_begin) continue;
    timeline.steps.push_back({0, process.window_begin, end});
    timeline.whole_window = true;
  }
}

bool is_bracketed(const Process& process) { return process.step_source == "profiler"; }

bool goes_by_clock(const Process& process) { return process.step_source.starts_with("time:"); }

bool Timeline::has_clock_steps() const {
  return goes_by_clock(*process) && !steps.empty() && !whole_window && period_confidence == 0 &&
         nested_source.empty();
}

bool names_optimizer_step(std::string_view name) { return name.starts_with("Optimizer.step#"); }

bool names_framework_operator(std::string_view name) {
  constexpr std::string_view kOwn[] = {"aten::", "c10d::", "autograd::", "torch::", "prims::"};
  if (name.find("Backward") != std::string_view::npos) {
    return std::isdigit(static_cast<unsigned char>(name.back())) != 0;
  }
  return std::any_of(std::begin(kOwn), std::end(kOwn),
                     [name](std::string_view own) { return name.starts_with(own); });
}

// A copy that returns when it is done: by name, or because its memory is not pinned. (A small
// asynchronous copy may be done before its call returns, too; nobody waited for it.)
bool Timeline::waits_for_own_work(const Call& call) const {
  std::vector<Work> works;
  works_of(call, works);
  if (works.empty()) return false;
  const Work& work = works.front();
  const bool pageable = traits_of(work.event).pageable;
  if (work.end <= call.end) return traits_of(call.event).waits || pageable;
  // To the device it returns when the last of it is staged, a little before it is over (CUDA
  // runtime API, "API synchronization behavior").
  const bool to_device = shape(work.event).direction == 1;  // CUpti_ActivityMemcpyKind
  return pageable && to_device && 2 * (call.end - work.begin) >= work.end - work.begin;
}

// The outermost call that caused it; kNone: it was not recorded.
uint32_t Timeline::call_event_of(const Work& work) const {
  const EventIndex cause = events().partner_of(work.event);
  if (cause == EventIndex::none || !traits_of(number(cause)).call) return kNone;
  const uint32_t thread = thread_of(number(cause));
  return thread == kNone ? kNone : threads[thread].calls.last(number(cause));
}

std::optional<Call> Timeline::call_of(const Work& work) const {
  const uint32_t event = call_event_of(work);
  if (event == kNone) return {};
  return call(event, thread_of(event));
}

int64_t Timeline::issue_of(uint32_t event, uint32_t stream) const {
  return traits_of(event).work ? call_begin_of(work(event, stream)) : kNotIssued;
}

Timeline::EventRange Timeline::work_of_steps(uint32_t stream) const {
  const uint32_t end_event = streams[stream].end_event;
  EventRange out{end_event, end_event};
  if (steps.empty()) return out;
  if (whole_window) return {streams[stream].first_event, end_event};
  const int64_t begin = steps.front().begin, end = steps.back().end;
  uint32_t began = end_event;  // the first event that began in the steps
  bool known = false;
  for (uint32_t i = streams[stream].first_event; i < end_event; ++i) {
    if (began == end_event && events().begin_of(i) >= begin) began = i;
    const int64_t at = issue_of(i, stream);
    known = known || at != kNotIssued;
    if (at == kNotIssued || at < begin) continue;
    if (at < end) out.first = i;
    break;
  }
  if (!known) out.first = began;
  uint32_t i = out.first;
  while (i < end_event && events().begin_of(i) < end) ++i;
  out.end = i;
  for (; known && i < end_event; ++i) {
    const int64_t at = issue_of(i, stream);
    if (at == kNotIssued) continue;
    if (at >= end) break;
    out.end = i + 1;
  }
  return out;
}

// Its own work, and that of calls inside it.
void Timeline::works_of(const Call& call, std::vector<Work>& out) const {
  out.clear();
  const uint32_t end = threads[call.thread].end_event;
  size_t chains = 0;
  for (uint32_t i = call.event; i < end; ++i) {
    if (i != call.event && events().begin_of(i) >= call.end) break;
    if (!traits_of(i).call) continue;
    EventIndex at = events().partner_of(i);
    chains += at != EventIndex::none;
    for (; at != EventIndex::none; at = events().next_sibling_of(number(at))) {
      const uint32_t stream = traits_of(number(at)).work ? stream_of(number(at)) : kNone;
      if (stream != kNone) out.push_back(work(number(at), stream));
    }
  }
  if (chains < 2) return;
  std::sort(out.begin(), out.end(), [](const Work& a, const Work& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.event < b.event;
  });
}

const Step* Timeline::step_at(int64_t time) const {
  const auto step = std::partition_point(steps.begin(), steps.end(),
                                         [&](const Step& each) { return each.end <= time; });
  return step == steps.end() || step->begin > time ? nullptr : &*step;
}

}  // namespace gpuprof::analysis
