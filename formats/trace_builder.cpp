// SPDX-License-Identifier: Apache-2.0
#include "formats/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "formats/core/columns.h"
#include "formats/shape_decoder.h"
#include "formats/trace_join.h"

namespace gpuprof {
namespace {

constexpr uint64_t kEventsPerByte = 32;  // no real stream compresses to less
constexpr uint64_t kEventsAlways = 1 << 20;
constexpr size_t kMostModules = 8192;  // a ring has room for 4,681

// A lane under construction. Times in its events are clock units until the segment ends.
struct OpenLane {
  Lane lane;
  std::vector<Event> events;
};

using LaneKey = std::tuple<LaneType, uint32_t, uint32_t, uint32_t, uint32_t>;

LaneKey key_of(const dump::Lane& lane) {
  const auto type = static_cast<LaneType>(lane.type());
  if (type == LaneType::thread) return {type, lane.thread_id(), 0, 0, 0};
  return {type, 0, lane.device(), lane.context(), lane.stream()};
}

// Walks one optional column: entries for the events whose kind has it, or none at all.
template <typename Field>
class OptionalColumn {
 public:
  explicit OptionalColumn(const Field& field) : field_(field) {}
  bool fits(int expected) const { return field_.empty() || field_.size() == expected; }
  uint64_t next() { return field_.empty() ? 0 : static_cast<uint64_t>(field_[at_++]); }
  uint64_t next_delta() { return last_ += next(); }

 private:
  const Field& field_;
  int at_ = 0;
  uint64_t last_ = 0;
};

// How many events of a lane have each column.
struct ColumnCounts {
  int bytes = 0, address = 0, address2 = 0, value = 0;
  void add(uint8_t columns) {
    bytes += (columns & kColumnBytes) != 0;
    address += (columns & kColumnAddress) != 0;
    address2 += (columns & kColumnAddress2) != 0;
    value += (columns & kColumnValue) != 0;
  }
};

uint8_t columns_of(const Shape& shape) {
  const KindLayout* const layout = layout_of(shape.kind);
  return layout ? layout->columns : 0;
}

// Times stay in [0, 2^62], and so do their differences, whatever a file claims.
constexpr int64_t kLatest = int64_t{1} << 62;

int64_t limited_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) sum = b > 0 ? kLatest : 0;
  return std::clamp<int64_t>(sum, 0, kLatest);
}

// Adding with a ceiling: what a file claims must not overflow.
uint64_t add_capped(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<uint64_t>::max() : sum;
}

}  // namespace

struct TraceBuilder::Segment {
  Process process;
  std::map<LaneKey, OpenLane> lanes;
  std::map<uint64_t, uint64_t> boundaries;  // number -> clock units

  // Null when the lane is sound, else what is wrong with it.
  const char* add_lane(const dump::Lane& lane, const std::vector<ShapeIndex>& shapes,
                       const std::vector<StackIndex>& stacks, const Trace& trace,
                       uint64_t base_time);
  // On the trace's time line; see trace.h.
  int64_t time_of_ticks(uint64_t ticks) const {
    return limited_sum(process.clock.monotonic_ns(ticks), process.realtime_offset);
  }
  int64_t time_of_units(uint64_t units) const { return time_of_ticks(process.clock.ticks(units)); }
  void fix_clock();
  void fix_window();
  void fix_steps();
  void lay_out_events();
  void convert_times();
  void fix_summary(const Trace& trace);
};

const char* TraceBuilder::Segment::add_lane(const dump::Lane& lane,
                                            const std::vector<ShapeIndex>& shapes,
                                            const std::vector<StackIndex>& stacks,
                                            const Trace& trace, uint64_t base_time) {
  const int count = lane.shape_size();
  if (lane.type() < dump::Lane::THREAD || lane.type() > dump::Lane::OVERHEAD) {
    return "is of an unknown type";
  }
  if (lane.begin_size() != count || lane.duration_size() != count ||
      (lane.correlation_size() != count && lane.correlation_size() != 0) ||
      (lane.stack_size() != count && lane.stack_size() != 0)) {
    return "has columns of different lengths";
  }
  ColumnCounts counts;
  for (const uint32_t shape : lane.shape()) {
    if (shape >= shapes.size()) return "names a shape that is not there";
    counts.add(columns_of(trace.shapes[shapes[shape]]));
  }
  for (const uint32_t stack : lane.stack()) {
    if (stack > stacks.size()) return "names a stack that is not there";
  }
  OptionalColumn bytes(lane.bytes()), value(lane.value());
  OptionalColumn address(lane.address()), address2(lane.address2());
  if (!bytes.fits(counts.bytes) || !address.fits(counts.address) ||
      !address2.fits(counts.address2) || !value.fits(counts.value)) {
    return "has a column of the wrong length";
  }
  OpenLane& open = lanes[key_of(lane)];
  open.lane = Lane{static_cast<LaneType>(lane.type()),
                   lane.thread_id(),
                   lane.thread_name().empty() ? open.lane.thread_name : lane.thread_name(),
                   lane.device(),
                   lane.context(),
                   lane.stream(),
                   0,
                   0};
  uint64_t last_end = base_time;
  int64_t correlation = 0;
  for (int i = 0; i < count; ++i) {
    Event event{};
    event.partner = event.next_sibling = EventIndex::none;
    event.shape = shapes[lane.shape(i)];
    event.begin = static_cast<int64_t>(last_end + static_cast<uint64_t>(lane.begin(i)));
    last_end = add_capped(static_cast<uint64_t>(event.begin), lane.duration(i));
    event.end = static_cast<int64_t>(last_end);
    const int64_t step = lane.correlation().empty() ? 0 : lane.correlation(i);
    if (step) {
      correlation = static_cast<int64_t>(static_cast<uint64_t>(correlation) +
                                         static_cast<uint64_t>(step > 0 ? step - 1 : step));
      event.correlation = static_cast<uint32_t>(correlation);
    }
    const uint8_t columns = columns_of(trace.shapes[event.shape]);
    EventExtra extra{};
    if (columns & kColumnBytes) extra.bytes = bytes.next();
    if (columns & kColumnAddress) extra.address = address.next_delta();
    if (columns & kColumnAddress2) extra.address2 = address2.next_delta();
    if (columns & kColumnValue) extra.value = value.next();
    if (lane.stack_size() && lane.stack(i)) extra.stack = stacks[lane.stack(i) - 1];
    if ((extra.bytes | extra.address | extra.address2 | extra.value) ||
        extra.stack != StackIndex::none) {
      event.extra = static_cast<uint32_t>(process.extras.size());
      process.extras.push_back(extra);
    }
    open.events.push_back(event);
  }
  return nullptr;
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
  p.window_begin = time_of_ticks(begin);
  p.window_end = end ? std::max(p.window_begin, time_of_ticks(end)) : 0;
}

void TraceBuilder::Segment::lay_out_events() {
  size_t total = 0;
  for (const auto& [key, open] : lanes) total += open.events.size();
  process.events.reserve(total);
  const auto earlier = [](const Event& a, const Event& b) {
    const auto ab = static_cast<uint64_t>(a.begin), bb = static_cast<uint64_t>(b.begin);
    return ab != bb ? ab < bb : static_cast<uint64_t>(a.end) > static_cast<uint64_t>(b.end);
  };
  for (auto& [key, open] : lanes) {
    if (!std::is_sorted(open.events.begin(), open.events.end(), earlier)) {
      std::stable_sort(open.events.begin(), open.events.end(), earlier);
    }
    open.lane.first_event = static_cast<uint32_t>(process.events.size());
    open.lane.event_count = static_cast<uint32_t>(open.events.size());
    for (Event& event : open.events) {
      event.lane = static_cast<LaneIndex>(process.lanes.size());
      process.events.push_back(event);
    }
    process.lanes.push_back(std::move(open.lane));
    std::vector<Event>().swap(open.events);
  }
  lanes.clear();
}

void TraceBuilder::Segment::convert_times() {
  int64_t last = process.window_begin;
  for (Event& event : process.events) {
    event.begin = time_of_units(static_cast<uint64_t>(event.begin));
    event.end = std::max(event.begin, time_of_units(static_cast<uint64_t>(event.end)));
    last = std::max(last, event.end);
  }
  if (!process.window_end) process.window_end = last;
  for (CounterSeries& series : process.counters) {
    for (auto& point : series.points) {
      point.time = time_of_units(static_cast<uint64_t>(point.time));
    }
  }
  for (auto& [id, node] : process.graph_nodes) {
    node.captured = time_of_units(static_cast<uint64_t>(node.captured));
  }
}

void TraceBuilder::Segment::fix_steps() {
  for (auto at = boundaries.begin(); at != boundaries.end(); ++at) {
    const auto next = std::next(at);
    if (next == boundaries.end() || next->first != at->first + 1) continue;
    const int64_t begin = time_of_units(at->second);
    process.steps.push_back({at->first, begin, std::max(begin, time_of_units(next->second))});
  }
}

void TraceBuilder::Segment::fix_summary(const Trace& trace) {
  Process& p = process;
  for (const dump::LossCount& loss : p.summary.loss()) {
    if (loss.cause() < p.losses.size()) p.losses[loss.cause()] += loss.count();
  }
  p.gpu_times_missing =
      p.has_summary ? p.summary.gpu_times_missing() : p.header.gpu_times_missing();
  p.step_source =
      p.summary.step_source().empty() ? p.header.step_source() : p.summary.step_source();
  for (Event& event : p.events) {  // device times of gpu_sync are clock units still
    const Kind kind = trace.shape(event).kind;
    if ((kind != Kind::gpu_sync && kind != Kind::gpu_event) || !event.extra) continue;
    uint64_t& time = p.extras[event.extra].address2;
    if (time) time = static_cast<uint64_t>(time_of_units(time));
  }
}

TraceBuilder::TraceBuilder(Trace& trace, std::string file, uint64_t input_bytes)
    : trace_(trace),
      file_(std::move(file)),
      event_limit_(kEventsAlways + input_bytes * kEventsPerByte) {}

TraceBuilder::~TraceBuilder() = default;

TraceBuilder::Segment& TraceBuilder::segment() {
  if (!segment_) {
    segment_ = std::make_unique<Segment>();
    segment_->process.path = file_;
    segment_->process.recovered = recovered_;
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
  done->lay_out_events();
  done->convert_times();
  done->fix_steps();
  done->fix_summary(trace_);
  join_process(trace_, p);
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

void TraceBuilder::on_counters(const dump::Counters& counters, uint64_t) {
  Process& p = segment().process;
  for (const dump::CounterSeries& in : counters.series()) {
    const auto counter = static_cast<Counter>(in.counter());
    if (in.counter() == 0 || in.counter() >= kCounters) continue;
    const auto same = [&](const CounterSeries& each) {
      return each.device == in.device() && each.counter == counter;
    };
    auto at = std::find_if(p.counters.begin(), p.counters.end(), same);
    if (at == p.counters.end()) at = p.counters.insert(at, {in.device(), counter, {}});
    uint64_t time = 0, value = 0;
    for (int i = 0; i < std::min(in.time_size(), in.value_size()); ++i) {
      time += static_cast<uint64_t>(in.time(i));
      value += static_cast<uint64_t>(in.value(i));
      at->points.push_back({static_cast<int64_t>(time), value});
    }
  }
}

void TraceBuilder::on_graphs(const dump::Graphs& graphs, uint64_t offset) {
  Process& p = segment().process;
  for (const dump::GraphNode& node : graphs.node()) {
    std::vector<uint64_t> frames;
    uint64_t address = 0;
    if ((frames_ += static_cast<uint64_t>(node.stack_frame_size())) > event_limit_) {
      trace_.problems.push_back(
          {file_, offset, "graph nodes have more frames than a file of this size can"});
      damaged_ = true;
      return;
    }
    for (const int64_t step : node.stack_frame()) {
      frames.push_back(address += static_cast<uint64_t>(step));
    }
    p.graph_nodes[node.id()] = {
        node.api(),     static_cast<int64_t>(node.captured_time()),
        node.thread(),  node.stream_handle(),
        node.capture(), frames.empty() ? StackIndex::none : p.stacks.add(frames)};
  }
}

const char* TraceBuilder::add_stacks(const dump::Events& events, std::vector<StackIndex>& stacks) {
  uint64_t address = 0;
  int at = 0;
  std::vector<uint64_t> frames;
  for (const uint32_t depth : events.stack_depth()) {
    if (depth > static_cast<uint64_t>(events.stack_frame_size() - at)) return "are cut";
    if ((frames_ += depth) > event_limit_) return "have more frames than a file of this size can";
    frames.clear();
    for (uint32_t i = 0; i < depth; ++i) {
      frames.push_back(address += static_cast<uint64_t>(events.stack_frame(at++)));
    }
    stacks.push_back(segment().process.stacks.add(frames));
  }
  return nullptr;
}

void TraceBuilder::on_events(const dump::Events& events, uint64_t offset) {
  if (segment_ && segment_->process.has_summary && !segment_->process.recovered) end_segment();
  Segment& s = segment();
  const auto problem = [&](std::string reason) {
    trace_.problems.push_back({file_, offset, std::move(reason)});
    damaged_ = true;
  };
  std::vector<ShapeIndex> shapes;
  if (!decode_shapes(events, trace_, shapes)) {
    return problem("a chunk's shapes name strings that are not there; the chunk was skipped");
  }
  std::vector<StackIndex> stacks;
  if (const char* const wrong = add_stacks(events, stacks)) {
    return problem(fmt::format("a chunk's stacks {}; the chunk was skipped", wrong));
  }
  for (const dump::Lane& lane : events.lane()) {
    events_ += static_cast<uint64_t>(lane.shape_size());
    if (events_ > event_limit_) {
      return problem("more events than a file of this size can hold; the rest was skipped");
    }
    const char* const wrong = s.add_lane(lane, shapes, stacks, trace_, events.base_time());
    if (wrong) problem(fmt::format("a lane {}; it was skipped", wrong));
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

void TraceBuilder::on_damage(const Problem&) { damaged_ = true; }

void TraceBuilder::mark_recovered() {
  recovered_ = true;
  if (segment_) segment_->process.recovered = true;
}

bool TraceBuilder::has_summary() const { return segment_ && segment_->process.has_summary; }

uint32_t TraceBuilder::window() const { return segment_ ? segment_->process.header.window() : 0; }

size_t TraceBuilder::finish() {
  end_segment();
  return appended_;
}

}  // namespace gpuprof
