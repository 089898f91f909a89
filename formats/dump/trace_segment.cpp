// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/trace_segment.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "formats/dump/group_names.h"
#include "formats/dump/left_out.h"
#include "formats/dump/live_memory_decoder.h"
#include "formats/trace/framework_join.h"
#include "formats/trace/graph_replay.h"
#include "formats/trace/thread_times.h"
#include "formats/trace/trace_join.h"

namespace gpuprof {
namespace {

TraceSegment::LaneKey key_of(const dump::Lane& lane) {
  const auto type = static_cast<LaneType>(lane.type());
  if (type == LaneType::thread) return {type, lane.thread_id(), 0, 0, 0};
  return {type, 0, lane.device(), lane.context(), lane.stream()};
}

std::string lane_name(const dump::Lane& lane, const Lane& before) {
  if (lane.type() == dump::Lane::RANGES) return "NVTX ranges from thread to thread";
  return lane.thread_name().empty() ? before.thread_name : lane.thread_name();
}

constexpr int64_t kLatest = int64_t{1} << 62;

// Samples come less often than asked for where they would cost too much.
int64_t usual_period(const Process& process) {
  constexpr int64_t kDefault = 5'000'000, kLongest = 100'000'000;
  const auto asked = static_cast<int64_t>(process.header.sample_period_ns());
  std::vector<int64_t> gaps;
  for (size_t i = 1; i < process.samples.size(); ++i) {
    const HostSample &before = process.samples[i - 1], &now = process.samples[i];
    if (before.thread == now.thread) gaps.push_back(now.time - before.time);
  }
  const auto middle = gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return std::clamp(gaps.empty() ? 0 : *middle, asked > 0 ? std::min(asked, kLongest) : kDefault,
                    kLongest);
}

// Of a device, or of a thread whose number stands for one.
std::vector<CounterSeries::Point>& points_of(Process& p, Counter counter, uint32_t number) {
  if (counter == Counter::processor_wait) {
    for (ProcessorWaits& each : p.processor_waits) {
      if (each.thread == number) return each.points;
    }
    return p.processor_waits.emplace_back(ProcessorWaits{number, {}}).points;
  }
  for (CounterSeries& each : p.counters) {
    if (each.device == number && each.counter == counter) return each.points;
  }
  return p.counters.emplace_back(CounterSeries{number, counter, {}}).points;
}

// One of a thread's two series; the other one, before or after it, has the same times.
void add_thread_times(Process& p, const dump::CounterSeries& in) {
  auto at = std::find_if(p.thread_times.begin(), p.thread_times.end(),
                         [&](const ThreadTimes& each) { return each.thread == in.device(); });
  if (at == p.thread_times.end()) at = p.thread_times.insert(at, {in.device(), {}});
  const bool running = in.counter() == static_cast<uint32_t>(Counter::thread_running);
  std::vector<ThreadTimes::Point>& points = at->points;
  size_t place = points.size();
  if (!running) {  // those of running came just before
    place = points.size() - std::min(points.size(), static_cast<size_t>(in.time_size()));
  }
  uint64_t time = 0, value = 0;
  for (int i = 0; i < std::min(in.time_size(), in.value_size()); ++i) {
    time += static_cast<uint64_t>(in.time(i));
    value += static_cast<uint64_t>(in.value(i));
    if (running) {
      points.push_back({static_cast<int64_t>(time), value, 0});
    } else if (place < points.size() && points[place].time == static_cast<int64_t>(time)) {
      points[place++].waiting_ns = value;
    }
  }
}

}  // namespace

void TraceSegment::add_lane(const ShapePool& pool, DecodedLane& in,
                            const std::shared_ptr<const std::vector<ShapeIndex>>& shapes,
                            const std::shared_ptr<const std::vector<StackIndex>>& stacks) {
  const dump::Lane& lane = in.lane;
  for (const RawSample& sample : in.samples) {
    process.samples.push_back(
        {static_cast<int64_t>(sample.time), lane.thread_id(), (*stacks)[sample.stack - 1]});
  }
  for (const RawHeapSample& sample : in.heap) {
    const Shape& shape = pool[(*shapes)[sample.shape]];
    process.heap.push_back({static_cast<int64_t>(sample.time), sample.address, sample.bytes,
                            shape.sample_interval, lane.thread_id(), shape.name,
                            sample.stack ? (*stacks)[sample.stack - 1] : StackIndex::none,
                            shape.value != 0});
  }
  const bool no_events = !in.samples.empty() || !in.heap.empty();
  if (in.part.size() == 0 && no_events) return;
  OpenLane& open = lanes[key_of(lane)];
  open.lane = Lane{static_cast<LaneType>(lane.type()),
                   lane.thread_id(),
                   lane_name(lane, open.lane),
                   lane.device(),
                   lane.context(),
                   lane.stream(),
                   0,
                   0};
  open.count += in.part.size();
  in.part.shapes = shapes;
  in.part.stacks = stacks;
  open.parts.push_back(std::move(in.part));
}

void TraceSegment::add_counters(const dump::Counters& counters) {
  Process& p = process;
  for (const dump::CounterSeries& in : counters.series()) {
    const auto counter = static_cast<Counter>(in.counter());
    if (in.counter() == 0 || in.counter() >= kCounters) continue;
    if (counter == Counter::thread_running || counter == Counter::thread_waiting) {
      add_thread_times(p, in);
      continue;
    }
    std::vector<CounterSeries::Point>& points = points_of(p, counter, in.device());
    uint64_t time = 0, value = 0;
    for (int i = 0; i < std::min(in.time_size(), in.value_size()); ++i) {
      time += static_cast<uint64_t>(in.time(i));
      value += static_cast<uint64_t>(in.value(i));
      points.push_back({static_cast<int64_t>(time), value});
    }
  }
}

void TraceSegment::add_workers(const dump::Workers& workers) {
  Process& p = process;
  p.usable_cpus = workers.usable_cpus();
  for (const dump::Worker& in : workers.worker()) {
    const auto born = static_cast<int64_t>(in.born());
    auto at = std::find_if(p.workers.begin(), p.workers.end(), [&](const Worker& each) {
      return each.pid == in.pid() && each.born == born;
    });
    if (at == p.workers.end()) at = p.workers.insert(at, {in.pid(), born, {}});
    const int count = std::min({in.time_size(), in.cpu_ns_size(), in.queue_ns_size(),
                                in.read_bytes_size(), static_cast<int>(in.state().size())});
    uint64_t time = 0;
    Worker::Sample sample{};
    for (int i = 0; i < count; ++i) {
      sample.time = static_cast<int64_t>(time += static_cast<uint64_t>(in.time(i)));
      sample.cpu_ns += static_cast<uint64_t>(in.cpu_ns(i));
      sample.queue_ns += static_cast<uint64_t>(in.queue_ns(i));
      sample.read_bytes += static_cast<uint64_t>(in.read_bytes(i));
      sample.state = in.state()[static_cast<size_t>(i)];
      at->samples.push_back(sample);
    }
  }
}

void TraceSegment::complete(Trace& trace) {
  fix_clock();
  fix_window();
  make_events(trace);
  convert_times();
  draw_workers();
  draw_threads();
  fix_steps();
  fix_summary();
  fix_budget();
  join_process(trace, process);
  nvtx_names.name_process(process);
  name_replayed_nodes(trace, process);
  join_framework(trace, process);
  join_live_memory(trace, process);
  if (process.recovered) process.summary.set_events(process.events.size());
}

// The Summary has all anchors of the run; the header those up to the window's begin.
void TraceSegment::fix_clock() {
  dump::Clock clock = process.header.clock();
  const dump::Clock& late = process.summary.clock();
  if (!process.has_header) clock.set_shift(late.shift());
  if (!clock.source()) clock.set_source(late.source());
  if (!clock.ticks_per_second()) clock.set_ticks_per_second(late.ticks_per_second());
  clock.mutable_anchor()->MergeFrom(late.anchor());
  process.clock = ClockMap::from(clock);
}

void TraceSegment::fix_window() {
  Process& p = process;
  const auto first_of = [](uint64_t a, uint64_t b) { return a ? a : b; };
  uint64_t begin = first_of(p.summary.window_begin_ticks(), p.header.window_begin_ticks());
  uint64_t end = p.summary.window_end_ticks();
  if (begin == 0 && !p.clock.anchors().empty()) begin = p.clock.anchors().front().ticks;
  int64_t offset = 0;
  if (__builtin_sub_overflow(p.clock.realtime_ns(begin), p.clock.monotonic_ns(begin), &offset)) {
    offset = 0;
  }
  p.realtime_offset = std::clamp(offset, 1 - kLatest, kLatest - 1);
  // In the units that all else is in: the first step begins not before the window.
  const auto time_of = [&](uint64_t ticks) { return time_of_units(ticks >> p.clock.shift()); };
  p.window_begin = time_of(begin);
  p.window_end = end ? std::max(p.window_begin, time_of(end)) : 0;
}

// Kinds of a newer gpuprof are not told.
void TraceSegment::fix_budget() {
  RecordingBudget& out = process.budget;
  // In the units that all else is in: what was left out from the start begins with the window.
  const auto time_of = [&](uint64_t ticks) {
    return time_of_units(ticks >> process.clock.shift());
  };
  out.allowed_pct = budget.allowed_ppm() / 1e4;
  for (const dump::Shed& each : budget.shed()) {
    if (each.kind() == 0 || each.kind() >= kShedKinds) continue;
    if (out.left_out_of(static_cast<ShedKind>(each.kind()))) continue;  // of a damaged file
    out.left_out.push_back({static_cast<ShedKind>(each.kind()),
                            std::max(process.window_begin, time_of(each.since_ticks())),
                            each.cost_ppm() / 1e4});
  }
  if (budget.until_ticks() <= budget.since_ticks()) return;
  out.since = time_of(budget.since_ticks());
  out.until = time_of(budget.until_ticks());
  out.cost_ns = budget.cost_ns();
}

void TraceSegment::make_events(Trace& trace) {
  std::vector<OpenLane> all;
  all.reserve(lanes.size());
  for (auto& [key, open] : lanes) all.push_back(std::move(open));
  lanes.clear();
  const uint64_t opened = process.header.window_begin_ticks();
  const uint64_t begins = process.summary.window_begin_ticks();
  if (opened && begins > opened) leave_out_earlier(begins >> process.clock.shift(), all, process);
  name_groups(trace, process.summary, all);
  nvtx_names.name_lanes(trace, all);
  const int64_t last = fill_events(trace, all, process, process.window_begin);
  if (!process.window_end) process.window_end = last;
}

// How much of a CPU each worker used, as a track.
void TraceSegment::draw_workers() {
  for (const Worker& worker : process.workers) {
    NamedCounter track{
        "DataLoader worker " + std::to_string(worker.pid), "CPU %", "", Shape::kAbsent, {}};
    for (size_t i = 1; i < worker.samples.size(); ++i) {
      const Worker::Sample &before = worker.samples[i - 1], &now = worker.samples[i];
      const double used = static_cast<double>(now.cpu_ns - before.cpu_ns);
      if (now.time <= before.time || now.cpu_ns < before.cpu_ns) continue;
      track.points.push_back(
          {before.time, 100 * used / static_cast<double>(now.time - before.time)});
    }
    if (!track.points.empty()) process.named_counters.push_back(std::move(track));
  }
}

// What share of each stretch between two readings a thread ran, waited for a processor and slept,
// as one track of three values.
void TraceSegment::draw_threads() {
  for (const ThreadTimes& times : process.thread_times) {
    if (times.points.size() < 2) continue;
    const std::string name = "thread " + std::to_string(times.thread);
    NamedCounter running{name, "running %", "", Shape::kAbsent, {}};
    NamedCounter waiting{name, "waiting for a processor %", "", Shape::kAbsent, {}};
    NamedCounter asleep{name, "asleep %", "", Shape::kAbsent, {}};
    const auto shares = shares_of(times);
    for (size_t i = 0; i < shares.size(); ++i) {
      if (!shares[i]) continue;
      const int64_t time = times.points[i].time;
      running.points.push_back({time, 100 * shares[i]->running});
      waiting.points.push_back({time, 100 * shares[i]->waiting});
      asleep.points.push_back({time, 100 * shares[i]->asleep()});
    }
    for (NamedCounter* track : {&running, &waiting, &asleep}) {
      if (!track->points.empty()) process.named_counters.push_back(std::move(*track));
    }
  }
}

void TraceSegment::convert_times() {
  for (CounterSeries& series : process.counters) {
    for (auto& point : series.points) {
      point.time = time_of_units(static_cast<uint64_t>(point.time));
    }
  }
  for (ProcessorWaits& waits : process.processor_waits) {
    for (auto& point : waits.points) point.time = time_of_units(static_cast<uint64_t>(point.time));
  }
  for (ThreadTimes& times : process.thread_times) {
    for (auto& point : times.points) point.time = time_of_units(static_cast<uint64_t>(point.time));
  }
  for (Worker& worker : process.workers) {
    worker.born = time_of_units(static_cast<uint64_t>(worker.born));
    for (auto& sample : worker.samples) {
      sample.time = time_of_units(static_cast<uint64_t>(sample.time));
    }
  }
  for (HostSample& sample : process.samples) {
    sample.time = time_of_units(static_cast<uint64_t>(sample.time));
  }
  for (HeapSample& sample : process.heap) {
    sample.time = time_of_units(static_cast<uint64_t>(sample.time));
  }
  std::stable_sort(process.heap.begin(), process.heap.end(),
                   [](const HeapSample& a, const HeapSample& b) { return a.time < b.time; });
  std::stable_sort(process.samples.begin(), process.samples.end(),
                   [](const HostSample& a, const HostSample& b) {
                     return std::tie(a.thread, a.time) < std::tie(b.thread, b.time);
                   });
  process.sample_period = usual_period(process);
  for (LiveMemory& live : process.live_memory) {
    const auto convert = [&](int64_t& time) { time = time_of_units(static_cast<uint64_t>(time)); };
    convert(live.time);
    for (LiveAllocation& allocation : live.allocations) convert(allocation.time);
    for (FailedAllocation& failed : live.failed) convert(failed.time);
    for (AllocatorTotals& allocator : live.allocators) convert(allocator.peak_time);
  }
  for (auto& [id, node] : process.graph_nodes) {
    node.captured = time_of_units(static_cast<uint64_t>(node.captured));
  }
  for (ReplayedGraph& graph : process.replayed_graphs) {
    graph.since = time_of_units(static_cast<uint64_t>(graph.since));
    for (ReplayedCall& call : graph.calls) {
      call.node.captured = time_of_units(static_cast<uint64_t>(call.node.captured));
    }
  }
}

void TraceSegment::fix_steps() {
  for (auto at = boundaries.begin(); at != boundaries.end(); ++at) {
    const auto next = std::next(at);
    if (next == boundaries.end() || next->first != at->first + 1) continue;
    const int64_t begin = time_of_units(at->second);
    process.steps.push_back({at->first, begin, std::max(begin, time_of_units(next->second))});
  }
  // The thread whose step opened the window waited there for the profiler: not the step's time.
  const int64_t ready =
      time_of_units(process.summary.window_ready_ticks() >> process.clock.shift());
  for (Step& step : process.steps) {
    if (step.begin == process.window_begin && ready < step.end) {
      step.begin = std::max(step.begin, ready);
    }
  }
}

void TraceSegment::fix_summary() {
  Process& p = process;
  constexpr uint32_t kNotKnown = 10;  // no writer counts it, and its loss_name() is "unknown"
  for (const dump::LossCount& loss : p.summary.loss()) {
    p.losses[loss.cause() < p.losses.size() ? loss.cause() : kNotKnown] += loss.count();
  }
  p.gpu_times_missing =
      p.has_summary ? p.summary.gpu_times_missing() : p.header.gpu_times_missing();
  p.step_source =
      p.summary.step_source().empty() ? p.header.step_source() : p.summary.step_source();
}

}  // namespace gpuprof
