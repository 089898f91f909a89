// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "formats/dump/events_decoder.h"
#include "formats/dump/group_names.h"
#include "formats/dump/lane_filler.h"
#include "formats/dump/left_out.h"
#include "formats/dump/live_memory_decoder.h"
#include "formats/dump/nvtx_names.h"
#include "formats/dump/shape_decoder.h"
#include "formats/trace/event_limit.h"
#include "formats/trace/framework_join.h"
#include "formats/trace/graph_replay.h"
#include "formats/trace/thread_times.h"
#include "formats/trace/trace_join.h"

namespace gpuprof {
namespace {

constexpr size_t kMostModules = 8192;       // a ring has room for 4,681
constexpr size_t kMostNvtxNames = 1 << 16;  // a process keeps 4,096

using LaneKey = std::tuple<LaneType, uint32_t, uint32_t, uint32_t, uint32_t>;

LaneKey key_of(const dump::Lane& lane) {
  const auto type = static_cast<LaneType>(lane.type());
  if (type == LaneType::thread) return {type, lane.thread_id(), 0, 0, 0};
  return {type, 0, lane.device(), lane.context(), lane.stream()};
}

std::string lane_name(const dump::Lane& lane, const Lane& before) {
  if (lane.type() == dump::Lane::RANGES) return "NVTX ranges from thread to thread";
  return lane.thread_name().empty() ? before.thread_name : lane.thread_name();
}

constexpr int64_t kLatest = int64_t{1} << 62;

// A frame as a message has it: an address, or the number of one of its Python codes. `text_of`
// gives the text of an element of `functions` or `files`.
template <typename Names, typename TextOf>
uint64_t frame_of(StackTable& table, uint64_t value, const Names& functions, const Names& files,
                  const TextOf& text_of) {
  const auto code = static_cast<int>(static_cast<uint32_t>(value));
  if (!(value & kPythonFrame)) return value;
  if (code < 0 || code >= functions.size() || code >= files.size()) {
    return table.python_frame("?", "", 0);
  }
  return table.python_frame(text_of(functions.Get(code)), text_of(files.Get(code)),
                            static_cast<uint32_t>(value >> 32));
}

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

}  // namespace

struct TraceBuilder::Segment {
  Process process;
  std::map<LaneKey, OpenLane> lanes;
  std::map<uint64_t, uint64_t> boundaries;  // number -> clock units
  NvtxNames nvtx_names;

  void add_lane(const ShapePool& pool, DecodedLane& in,
                const std::shared_ptr<const std::vector<ShapeIndex>>& shapes,
                const std::shared_ptr<const std::vector<StackIndex>>& stacks);
  // On the trace's time line; see trace.h.
  int64_t time_of_ticks(uint64_t ticks) const {
    return trace_time(process.clock.monotonic_ns(ticks), process.realtime_offset);
  }
  int64_t time_of_units(uint64_t units) const { return time_of_ticks(process.clock.ticks(units)); }
  void fix_clock();
  void fix_window();
  void fix_steps();
  void make_events(Trace& trace);
  void convert_times();
  void draw_workers();
  void draw_threads();
  void fix_summary();
};

void TraceBuilder::Segment::add_lane(const ShapePool& pool, DecodedLane& in,
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

// The Summary has all anchors of the run; the header those up to the window's begin.
void TraceBuilder::Segment::fix_clock() {
  dump::Clock clock = process.header.clock();
  const dump::Clock& late = process.summary.clock();
  if (!process.has_header) clock.set_shift(late.shift());
  if (!clock.source()) clock.set_source(late.source());
  if (!clock.ticks_per_second()) clock.set_ticks_per_second(late.ticks_per_second());
  clock.mutable_anchor()->MergeFrom(late.anchor());
  process.clock = ClockMap::from(clock);
}

void TraceBuilder::Segment::fix_window() {
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

void TraceBuilder::Segment::make_events(Trace& trace) {
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
void TraceBuilder::Segment::draw_workers() {
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
void TraceBuilder::Segment::draw_threads() {
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

void TraceBuilder::Segment::convert_times() {
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

void TraceBuilder::Segment::fix_steps() {
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

void TraceBuilder::Segment::fix_summary() {
  Process& p = process;
  for (const dump::LossCount& loss : p.summary.loss()) {
    if (loss.cause() < p.losses.size()) p.losses[loss.cause()] += loss.count();
  }
  p.gpu_times_missing =
      p.has_summary ? p.summary.gpu_times_missing() : p.header.gpu_times_missing();
  p.step_source =
      p.summary.step_source().empty() ? p.header.step_source() : p.summary.step_source();
}

TraceBuilder::TraceBuilder(Trace& trace, std::string file, uint64_t input_bytes)
    : trace_(trace), file_(std::move(file)), event_limit_(event_limit(input_bytes)) {}

TraceBuilder::~TraceBuilder() = default;

TraceBuilder::Segment& TraceBuilder::segment() {
  if (!segment_) {
    segment_ = std::make_unique<Segment>();
    segment_->process.path = file_;
    segment_->process.recovered = recovered_;
    segment_->process.looked_at = looked_at_;
    segment_->process.extras.push_back({});
    segment_->process.header.set_rank(-1);
    segment_->process.header.set_local_rank(-1);
  }
  return *segment_;
}

void TraceBuilder::end_segment() {
  if (!segment_) return;
  const std::unique_ptr<Segment> done = std::move(segment_);
  Process& p = done->process;
  done->fix_clock();
  done->fix_window();
  done->make_events(trace_);
  done->convert_times();
  done->draw_workers();
  done->draw_threads();
  done->fix_steps();
  done->fix_summary();
  join_process(trace_, p);
  done->nvtx_names.name_process(p);
  name_replayed_nodes(trace_, p);
  join_framework(trace_, p);
  join_live_memory(trace_, p);
  if (p.recovered) p.summary.set_events(p.events.size());
  if (damaged_) {
    p.completeness = Completeness::damaged;
  } else {
    const bool whole = p.has_summary && !p.recovered;
    p.completeness = whole ? Completeness::complete : Completeness::truncated;
  }
  damaged_ = false;
  if (!p.clock.usable()) {
    trace_.problems.push_back(
        {file_, 0,
         "the clock cannot be related to wall time: the chunk that says how is missing; "
         "times are clock ticks"});
  }
  trace_.processes.push_back(std::move(p));
  ++appended_;
}

void TraceBuilder::on_header(const dump::Header& header, uint64_t) {
  // A damage found before the header of a second dump belongs to the first one.
  end_segment();
  Process& p = segment().process;
  p.header = header;
  p.has_header = true;
}

namespace {

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

void TraceBuilder::on_counters(const dump::Counters& counters, uint64_t) {
  Process& p = segment().process;
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

void TraceBuilder::on_workers(const dump::Workers& workers, uint64_t) {
  Process& p = segment().process;
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

void TraceBuilder::on_graphs(const dump::Graphs& graphs, uint64_t offset) {
  Process& p = segment().process;
  const auto read = [&](const dump::GraphNode& node, GraphNode& out) {
    std::vector<uint64_t> frames;
    uint64_t address = 0;
    if ((frames_ += static_cast<uint64_t>(node.stack_frame_size())) > event_limit_) {
      trace_.problems.push_back(
          {file_, offset, "graph nodes have more frames than a file of this size can"});
      damaged_ = true;
      return false;
    }
    for (const int64_t step : node.stack_frame()) {
      address += static_cast<uint64_t>(step);
      frames.push_back(frame_of(p.stacks, address, graphs.code_function(), graphs.code_file(),
                                [](const std::string& text) { return std::string_view(text); }));
    }
    out = {node.api(),     static_cast<int64_t>(node.captured_time()),
           node.thread(),  node.stream_handle(),
           node.capture(), frames.empty() ? StackIndex::none : p.stacks.add(frames)};
    return true;
  };
  for (const dump::GraphNode& node : graphs.node()) {
    if (!read(node, p.graph_nodes[node.id()])) return;
  }
  for (const dump::ReplayedGraph& in : graphs.replayed()) {
    ReplayedGraph& graph = p.replayed_graphs.emplace_back();
    graph = {in.exec(), static_cast<int64_t>(in.since()), in.complete(), {}};
    for (const dump::ReplayedCall& call : in.call()) {
      ReplayedCall& out = graph.calls.emplace_back();
      out.kind = static_cast<Kind>(call.kind());
      out.kernel = trace_.strings.intern(call.kernel());
      if (call.size_size() == 6) {
        out.grid = {call.size(0), call.size(1), call.size(2)};
        out.block = {call.size(3), call.size(4), call.size(5)};
      }
      out.bytes = call.bytes();
      out.known = !call.node().api().empty();
      if (!read(call.node(), out.node)) return;
    }
  }
}

void TraceBuilder::on_live_memory(const dump::LiveMemory& live, uint64_t offset) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  Process& p = segment().process;
  const char* wrong = nullptr;
  if (events_ += static_cast<uint64_t>(live.address_size()); events_ > event_limit_) {
    wrong = "has more allocations than a file of this size can";
  } else if (frames_ += static_cast<uint64_t>(live.stack_frame_size()); frames_ > event_limit_) {
    wrong = "has more frames than a file of this size can";
  } else {
    wrong = decode_live_memory(live, trace_, p, [&](uint64_t value) {
      return frame_of(p.stacks, value, live.code_function(), live.code_file(),
                      [](const std::string& text) { return std::string_view(text); });
    });
  }
  if (!wrong) return;
  trace_.problems.push_back({file_, offset, fmt::format("a chunk of live memory {}", wrong)});
  damaged_ = true;
}

const char* TraceBuilder::add_stacks(const dump::Events& events, std::vector<StackIndex>& stacks) {
  uint64_t address = 0;
  int at = 0;
  std::vector<uint64_t> frames;
  StackTable& table = segment().process.stacks;
  const auto text_of = [&](uint32_t index) -> std::string_view {
    if (index >= static_cast<uint32_t>(events.string_size())) return {};
    return events.string(static_cast<int>(index));
  };
  for (const uint32_t depth : events.stack_depth()) {
    if (depth > static_cast<uint64_t>(events.stack_frame_size() - at)) return "are cut";
    if ((frames_ += depth) > event_limit_) return "have more frames than a file of this size can";
    frames.clear();
    for (uint32_t i = 0; i < depth; ++i) {
      address += static_cast<uint64_t>(events.stack_frame(at++));
      frames.push_back(
          frame_of(table, address, events.code_function(), events.code_file(), text_of));
    }
    stacks.push_back(table.add(frames));
  }
  return nullptr;
}

void TraceBuilder::on_events(DecodedEvents& decoded, uint64_t offset) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  Segment& s = segment();
  const dump::Events& events = decoded.rest;
  const auto problem = [&](std::string reason) {
    trace_.problems.push_back({file_, offset, std::move(reason)});
    damaged_ = true;
  };
  const auto shapes = std::make_shared<std::vector<ShapeIndex>>();
  if (!decode_shapes(events, trace_, *shapes)) {
    return problem("a chunk's shapes name strings that are not there; the chunk was skipped");
  }
  const auto stacks = std::make_shared<std::vector<StackIndex>>();
  if (const char* const wrong = add_stacks(events, *stacks)) {
    return problem(fmt::format("a chunk's stacks {}; the chunk was skipped", wrong));
  }
  for (DecodedLane& lane : decoded.lanes) {
    events_ += lane.claimed;
    if (events_ > event_limit_) {
      return problem("more events than a file of this size can hold; the rest was skipped");
    }
    if (lane.wrong) {
      problem(fmt::format("a lane {}; it was skipped", lane.wrong));
    } else {
      s.add_lane(trace_.shapes, lane, shapes, stacks);
    }
  }
  for (int i = 0; i < events.ring_chunk_size(); ++i) {
    const uint32_t records = i < events.ring_records_size() ? events.ring_records(i)
                                                            : std::numeric_limits<uint32_t>::max();
    uint32_t& known = ring_chunks_[events.ring_chunk(i)];
    known = std::max(known, records);
  }
}

void TraceBuilder::on_steps(const dump::Steps& steps, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  Segment& s = segment();
  uint64_t time = 0, index = steps.first();
  for (const int64_t delta : steps.boundary()) {
    if (s.boundaries.size() >= event_limit_) break;
    time += static_cast<uint64_t>(delta);
    s.boundaries.emplace(index++, time);
  }
}

void TraceBuilder::on_modules(const dump::Modules& modules, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  for (const dump::Module& in : modules.module()) {
    if (segment().process.stacks.modules().size() >= kMostModules) break;
    segment().process.stacks.add_module({in.begin(), in.end(), in.bias(), in.path(), in.build_id(),
                                         in.file_bytes(), in.modified_ns()});
  }
}

void TraceBuilder::on_summary(const dump::Summary& summary, uint64_t) {
  Process& p = segment().process;
  p.summary = summary;
  p.has_summary = true;
}

void TraceBuilder::on_nvtx_names(const dump::NvtxNames& names, uint64_t) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  segment().nvtx_names.add(names, kMostNvtxNames);
}

void TraceBuilder::on_damage(const Problem&) { damaged_ = true; }

void TraceBuilder::mark_recovered(int64_t looked_at) {
  recovered_ = true;
  looked_at_ = looked_at;
  if (!segment_) return;
  segment_->process.recovered = true;
  segment_->process.looked_at = looked_at;
}

bool TraceBuilder::has_summary() const { return segment_ && segment_->process.has_summary; }

uint32_t TraceBuilder::window() const { return segment_ ? segment_->process.header.window() : 0; }

size_t TraceBuilder::finish() {
  end_segment();
  return appended_;
}

}  // namespace gpuprof
