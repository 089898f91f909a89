// SPDX-License-Identifier: Apache-2.0
// The walk through a trace: what each track of it gets.
#include "formats/writers/perfetto/perfetto_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <optional>

#include "formats/io/output_folder.h"
#include "formats/io/parallel_output.h"
#include "formats/trace/heap.h"
#include "formats/trace/names.h"
#include "formats/views/gpu_curves.h"
#include "formats/views/left_out_text.h"
#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"
#include "formats/writers/perfetto/perfetto_packets.h"
#include "formats/writers/perfetto/perfetto_slices.h"
#include "formats/writers/perfetto/perfetto_stacks.h"
#include "formats/writers/perfetto/perfetto_tracks.h"

namespace gpuprof {
namespace {

using perfetto::EventType;
using perfetto::LaneRows;
using perfetto::PacketWriter;
using perfetto::SlicePackets;
using perfetto::Stacks;

constexpr uint32_t kStretch = 1 << 12;  // events that a thread writes at a time: fit a cache
constexpr size_t kMuchText = 1 << 20;

bool is_async_range(const Shape& shape, const EventExtra& extra) {
  return shape.kind == Kind::nvtx_range && extra.address != 0;
}

// What becomes of an event of a lane.
enum class Place : uint8_t { none, first, second, moment };

// Where the walk through a lane stands.
struct LaneState {
  TrackSplitter splitters[2];
  explicit LaneState(const LaneRows& rows)
      : splitters{TrackSplitter(rows.families[0].overlap),
                  TrackSplitter(rows.families[1].overlap)} {}
};

using Processes = std::vector<const Process*>;

class PerfettoExport {
 public:
  // `wrote` is called with how many events more were written.
  PerfettoExport(const Trace& trace, const Processes& processes, OutputFile& file,
                 std::function<void(uint64_t)> wrote)
      : trace_(trace), processes_(processes), output_(file, std::move(wrote)) {}

  void run() {
    int64_t start = 0;
    for (const Process* const p : processes_) {
      start = start ? std::min(start, p->window_begin) : p->window_begin;
    }
    out_.start(start);
    packets_.emplace(trace_, processes_, out_);
    for (size_t i = 0; i < processes_.size(); ++i) one_process(*processes_[i], i);
    output_.write(text_);
    output_.finish();
  }

 private:
  void one_process(const Process& process, size_t number) {
    process_ = &process;
    output_.finish();  // what is being written still reads what the packets know
                       // of a process
    packets_->enter(process, static_cast<uint64_t>(number + 1) << 32);
    tracks_.enter(process);
    steps();
    left_out();
    // Beside the writing of lanes, whose threads have to be fed from here.
    std::future<std::vector<GpuCurve>> curves =
        std::async(std::launch::async, [&] { return gpu_curves(trace_, process); });
    for (const Lane& lane : process.lanes) write_lane(lane, tracks_.rows_of(lane));
    samples();
    heap();
    memory();
    int32_t number_of_curve = 0;
    for (const GpuCurve& found : curves.get()) curve(found, number_of_curve++);
    for (const CounterSeries& series : process_->counters) gpu_counter(series);
    for (size_t i = 0; i < process_->named_counters.size(); ++i) {
      named_counter(process_->named_counters[i], i);
    }
  }

  void steps() {
    const auto steps = process_->window_steps();
    if (steps.empty()) return;
    const uint64_t track = tracks_.of_process("steps", "steps", 0);
    for (const Step& step : steps) {
      out_.begin_event(EventType::slice_begin, track, step.begin);
      out_.name(fmt::format("step {}", step.step));
      out_.category("step");
      out_.end_event();
      out_.begin_event(EventType::slice_end, track, step.end);
      out_.end_event();
    }
  }

  // From where on the trace has not all that happened: one within the other, to the window's end.
  void left_out() {
    const std::vector<RecordingBudget::LeftOut>& all = process_->budget.left_out;
    if (all.empty()) return;
    const uint64_t track = tracks_.of_process("left_out", kLeftOutTitle, 0);
    for (const RecordingBudget::LeftOut& each : all) {
      out_.begin_event(EventType::slice_begin, track, each.since);
      out_.name(left_out_words(each.kind));
      out_.category("gpuprof");
      out_.end_event();
    }
    const int64_t end = std::max(process_->window_end, all.back().since);
    for (size_t i = 0; i < all.size(); ++i) {
      out_.begin_event(EventType::slice_end, track, end);
      out_.end_event();
    }
  }

  // Viewers draw them beside the thread's row, as call stack samples.
  void samples() {
    Stacks stacks(process_->stacks, out_);
    std::map<StackIndex, uint64_t> ids;
    for (const HostSample& sample : process_->samples) {
      const auto [id, fresh] = ids.try_emplace(sample.stack);
      if (fresh) id->second = stacks.callstack(sample.stack);
      out_.stack_sample(sample.time, tracks_.pid(), tracks_.thread_id(sample.thread), id->second);
      flush_if_large();
    }
  }

  // A flame graph, and what was held as a curve.
  void heap() {
    if (process_->heap.empty()) return;
    const std::vector<HeapPoint> curve = heap_curve(*process_);
    const uint64_t track =
        tracks_.of_process("heap", "host memory allocated in the window (sampled)", 4, true);
    for (const HeapPoint& point : curve) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(whole_number(point.held_bytes));
      out_.end_event();
      flush_if_large();
    }
    Stacks stacks(process_->stacks, out_);
    std::vector<perfetto::HeapStack> sites;
    const auto whole = [](double value) {
      return static_cast<uint64_t>(std::max(int64_t{0}, whole_number(value)));
    };
    for (const HeapSite& site : heap_sites(*process_)) {
      sites.push_back({stacks.callstack(site.stack), whole(site.bytes), whole(site.count),
                       whole(site.bytes - site.held_bytes), whole(site.count - site.held_count)});
    }
    out_.heap_profile(process_->window_end, tracks_.pid(), process_->heap.front().interval, sites);
  }

  void curve(const GpuCurve& curve, int32_t number) {
    const uint64_t track =
        tracks_.gpu_counter(curve.device, "curve", curve.name, 2500000 + number, curve.unit);
    for (const GpuCurve::Point& point : curve.points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(point.value);
      out_.end_event();
    }
  }

  void memory() {
    const MemoryCurves curves = memory_curves(trace_, *process_);
    const std::string note = left_out_note(*process_, ShedKind::calls);
    counter(curves.device, "memory", "GPU memory allocated in the window" + note, 3);
    counter(curves.host, "pinned", "pinned host memory allocated in the window" + note, 4);
    for (const TensorCurve& curve : curves.tensors) {
      const std::string device = device_name(curve.device_type, curve.device_id);
      counter(curve.points, "tensors/" + device, "tensors on " + device, 4);
    }
  }

  void counter(const std::vector<MemoryPoint>& points, std::string_view path, std::string_view name,
               int32_t rank) {
    if (points.empty()) return;
    const uint64_t track = tracks_.of_process(path, name, rank, true);
    for (const MemoryPoint& point : points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(point.total);
      out_.end_event();
      flush_if_large();
    }
  }

  void gpu_counter(const CounterSeries& series) {
    const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
    const auto rank = static_cast<int32_t>(3000000 + static_cast<int>(series.counter));
    // Beside the curve of that name, which is of this process alone.
    const bool busy = series.counter == Counter::gpu_busy;
    const uint64_t track =
        tracks_.gpu_counter(series.device, "nvml", busy ? "GPU busy (NVML)" : text.name, rank,
                            text.unit[0] ? text.unit : "1");
    for (const CounterSeries::Point& point : series.points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(static_cast<int64_t>(point.value));
      out_.end_event();
    }
  }

  void named_counter(const NamedCounter& series, size_t number) {
    const std::string name =
        series.key.empty() || series.key == "value" ? series.name : series.name + " " + series.key;
    const uint64_t track =
        tracks_.named_counter(series.device, fmt::format("counter{}/{}", number, name), name);
    for (const NamedCounter::Point& point : series.points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(point.value);
      out_.end_event();
    }
  }

  static Place place_of(LaneType lane, const Shape& shape, const Process& process,
                        const Event& event) {
    switch (lane) {
      case LaneType::thread:
        if (is_instant(shape.kind)) return Place::moment;
        return is_async_range(shape, process.extra(event)) ? Place::second : Place::first;
      case LaneType::other: return is_instant(shape.kind) ? Place::moment : Place::first;
      default: break;
    }
    if (!drawable(shape)) return Place::none;
    if (lane == LaneType::stream) {
      return shape.kind == Kind::gpu_annotation ? Place::second : Place::first;
    }
    return lane == LaneType::device && shape.kind != Kind::gpu_sync ? Place::moment : Place::first;
  }

  // Goes through events [first, end) of a lane. `slice(family, track, event,
  // slice)`, `ended(family, track, time)`, `moment(event)`.
  template <typename OnSlice, typename OnEnd, typename OnMoment>
  static void walk(const Trace& trace, const Process& process, LaneType type, uint32_t first,
                   uint32_t end, LaneState& state, const OnSlice& slice, const OnEnd& ended,
                   const OnMoment& moment) {
    for (const Event& event : process.events.range(first, end - first)) {
      const Place place = place_of(type, trace.shape(event), process, event);
      if (place == Place::none) continue;
      if (place == Place::moment) {
        moment(event);
        continue;
      }
      const size_t family = place == Place::second;
      Slice placed{event.index, event.begin, event.end};
      const size_t track = state.splitters[family].place(
          placed, [&](size_t on, int64_t time) { ended(family, on, time); });
      slice(family, track, event, placed);
    }
  }

  // A lane is walked through twice: here, to know which tracks there are and
  // where each stretch begins; and by whoever writes the stretch.
  void write_lane(const Lane& lane, LaneRows rows) {
    LaneState state(rows);
    const uint32_t end = lane.first_event + lane.event_count;
    for (uint32_t first = lane.first_event; first < end;) {
      const uint32_t next = std::min(end, first + kStretch);
      const LaneState before = state;
      bool moments = false, used[2] = {};
      walk(
          trace_, *process_, rows.type, first, next, state,
          [&](size_t family, size_t, const Event&, const Slice&) { used[family] = true; },
          [](size_t, size_t, int64_t) {}, [&](const Event&) { moments = true; });
      for (size_t i = 0; i < 2; ++i) {
        if (used[i]) tracks_.declare_all(rows.families[i], state.splitters[i].tracks());
      }
      if (moments) tracks_.declare_all(rows.moments, 1);
      output_.write(text_);
      output_.add(
          [&trace = trace_, process = process_, &packets = *packets_, start = out_.start_time(),
           rows, before, first, next, last = next == end](std::string& out) {
            return write_stretch(trace, *process, packets, start, rows, before, first, next, last,
                                 out);
          },
          next - first);
      first = next;
    }
  }

  static size_t write_stretch(const Trace& trace, const Process& process,
                              const SlicePackets& packets, int64_t start, const LaneRows& rows,
                              LaneState state, uint32_t first, uint32_t end, bool last,
                              std::string& bytes) {
    perfetto::Output out{perfetto::Message(std::move(bytes)), start};
    const auto ended = [&](size_t family, size_t track, int64_t time) {
      SlicePackets::end_slice(out, rows.families[family].tracks[track], time);
    };
    walk(
        trace, process, rows.type, first, end, state,
        [&](size_t family, size_t track, const Event& event, const Slice& slice) {
          packets.begin_slice(out, rows.families[family].tracks[track], event, slice);
          if (rows.queue && family == 0) packets.render_stage(out, *rows.queue, event);
        },
        ended, [&](const Event& event) { packets.instant(out, rows.moments.tracks[0], event); });
    for (size_t family = 0; last && family < 2; ++family) {
      state.splitters[family].finish(
          [&](size_t track, int64_t time) { ended(family, track, time); });
    }
    bytes = out.message.take();
    return out.message.size();
  }

  void flush_if_large() {
    if (text_.size() >= kMuchText) output_.write(text_);
  }

  const Trace& trace_;
  const Processes& processes_;
  std::string text_;  // packets that are not on their way to the file
  PacketWriter out_{text_};
  std::optional<SlicePackets> packets_;
  perfetto::Tracks tracks_{out_};
  const Process* process_ = nullptr;
  ParallelOutput output_;  // last: its threads read the others
};

bool write_file(const Trace& trace, const Processes& processes, const std::string& path,
                Compression compression, Links links, ExportProgress& progress,
                std::string& error) {
  OutputFile file(path, compression, links);
  if (file.ok()) {
    PerfettoExport(trace, processes, file, [&](uint64_t events) { progress.add(events); }).run();
  }
  if (file.commit()) return true;
  error = file.error();
  return false;
}

std::string rank_or_pid(const dump::Header& header) {
  return header.rank() >= 0 ? fmt::format("_r{}", header.rank()) : fmt::format("_{}", header.pid());
}

}  // namespace

bool write_perfetto(const Trace& trace, const std::string& path, const ExportOptions& options,
                    std::string& error) {
  Processes all;
  for (const Process& process : trace.processes) all.push_back(&process);
  ExportProgress progress(trace, options);
  return write_file(trace, all, path, options.compression, options.links, progress, error);
}

bool write_perfetto_ranks(const Trace& trace, const std::string& path, const ExportOptions& options,
                          std::string& error) {
  if (!make_folder(path, error, options.links)) return false;
  std::map<std::string, Processes> files;  // by name
  for (const Process& process : trace.processes) {
    files[file_name_part(process.header.host()) + rank_or_pid(process.header)].push_back(&process);
  }
  ExportProgress progress(trace, options);
  for (const auto& [name, processes] : files) {
    const std::string file = path + "/" + name + ".pftrace";
    if (!write_file(trace, processes, file, Compression::none, Links::replaced, progress, error))
      return false;
  }
  return true;
}

}  // namespace gpuprof
