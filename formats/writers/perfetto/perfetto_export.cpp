// SPDX-License-Identifier: Apache-2.0
// Tracks: per process its threads (calls and NVTX ranges), steps, memory and
// CUPTI's overhead; per process and device a parent "GPU n" with its streams
// and synchronization below it.
#include "formats/writers/perfetto/perfetto_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <unordered_map>

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

namespace gpuprof {
namespace {

using perfetto::EventType;
using perfetto::PacketWriter;
using perfetto::SlicePackets;
using perfetto::Stacks;

constexpr uint32_t kStretch = 1 << 12;  // events that a thread writes at a time: fit a cache
constexpr size_t kMuchText = 1 << 20;
constexpr int64_t kHostStride = 1 << 22;  // Linux process ids are below this

bool is_async_range(const Shape& shape, const EventExtra& extra) {
  return shape.kind == Kind::nvtx_range && extra.address != 0;
}

// What becomes of an event of a lane.
enum class Place : uint8_t { none, first, second, moment };

// The rows that the events of a lane go to: up to two families of tracks, and
// one for moments.
struct LaneRows {
  struct Family {
    Overlap overlap = Overlap::nest;
    std::string path, name;
    uint64_t parent = 0;
    int32_t rank = 0;
    std::vector<uint64_t> tracks{};  // [0]: the usual one; 0: not declared
  };
  LaneType type = LaneType::thread;
  Family families[2], moments;
  std::optional<SlicePackets::Queue> queue{};  // for the GPU pages
};

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
  // Pids of different hosts may be equal; Perfetto knows one machine.
  int64_t host_number(const std::string& host) {
    const auto [at, fresh] = hosts_.emplace(host, static_cast<int64_t>(hosts_.size() % 512));
    return at->second;
  }

  void one_process(const Process& process, size_t number) {
    process_ = &process;
    output_.finish();  // what is being written still reads what the packets know
                       // of a process
    packets_->enter(process, static_cast<uint64_t>(number + 1) << 32);
    const dump::Header& header = process.header;
    const int64_t offset = host_number(header.host()) * kHostStride;
    pid_ = offset + header.pid();
    prefix_ = fmt::format("{}/{}/{}", header.host(), header.pid(), header.os_start_time());
    const TrackId own = track_of(prefix_);
    process_uuid_ = own.uuid;
    if (own.fresh) {
      out_.process_track(process_uuid_, pid_, process_title(process),
                         header.rank() >= 0 ? fmt::format("rank {}", header.rank()) : "",
                         process.window_begin);
    }
    steps();
    left_out();
    // Beside the writing of lanes, whose threads have to be fed from here.
    std::future<std::vector<GpuCurve>> curves =
        std::async(std::launch::async, [&] { return gpu_curves(trace_, process); });
    for (const Lane& lane : process.lanes) {
      switch (lane.type) {
        case LaneType::thread: write_lane(lane, thread(lane, offset)); break;
        case LaneType::stream: write_lane(lane, stream(lane)); break;
        case LaneType::device: write_lane(lane, device(lane)); break;
        case LaneType::overhead: write_lane(lane, overhead()); break;
        case LaneType::other: write_lane(lane, other(lane)); break;
      }
    }
    samples(offset);
    heap();
    memory();
    int32_t number_of_curve = 0;
    for (const GpuCurve& found : curves.get()) curve(found, number_of_curve++);
    for (const CounterSeries& series : process_->counters) gpu_counter(series);
    for (size_t i = 0; i < process_->named_counters.size(); ++i) {
      named_counter(process_->named_counters[i], i);
    }
  }

  // Tracks are numbered as they come: small numbers make small packets. Fresh: to be declared.
  struct TrackId {
    uint64_t uuid;
    bool fresh;
  };
  TrackId track_of(std::string path) {
    const auto [at, fresh] = tracks_.try_emplace(std::move(path), tracks_.size() + 1);
    return {at->second, fresh};
  }

  // Declares a track unless an earlier window of the process did.
  uint64_t declare(std::string_view path, uint64_t parent, std::string_view name, int32_t rank,
                   bool counter = false, bool ordered = false) {
    const auto [uuid, fresh] = track_of(fmt::format("{}/{}", prefix_, path));
    if (fresh) {
      out_.track({uuid, parent, name, rank, ordered, counter});
    }
    return uuid;
  }

  uint64_t gpu_track(uint32_t device) {
    const dump::Header& header = process_->header;
    std::string name = fmt::format("GPU {}", device);
    for (const dump::Device& known : header.device()) {
      if (known.id() == device && !known.name().empty()) name += fmt::format(" {}", known.name());
    }
    if (const auto own = process_->gpu_names.find(device); own != process_->gpu_names.end()) {
      name += fmt::format(" \"{}\"", own->second);
    }
    if (header.rank() >= 0) {
      name += fmt::format(" (rank {})", header.rank());
    } else {
      name += fmt::format(" (pid {})", header.pid());
    }
    name += gpu_times_note(*process_);
    return declare(fmt::format("gpu{}", device), 0, name, 0, false, true);
  }

  void steps() {
    const auto steps = process_->window_steps();
    if (steps.empty()) return;
    const uint64_t track = declare("steps", process_uuid_, "steps", 0);
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
    const uint64_t track = declare("left_out", process_uuid_, kLeftOutTitle, 0);
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

  LaneRows thread(const Lane& lane, int64_t offset) {
    const std::string path = fmt::format("thread{}", lane.thread_id);
    const auto [uuid, fresh] = track_of(fmt::format("{}/{}", prefix_, path));
    if (fresh) {
      out_.thread_track(uuid, pid_, offset + lane.thread_id, lane.thread_name,
                        process_->window_begin);
    }
    LaneRows rows;
    const std::string overlapping = fmt::format("thread {} overlapping", lane.thread_id);
    rows.families[0] = {Overlap::nest, path, overlapping, uuid, 0, {uuid}};
    rows.families[1] = {Overlap::nest, path + "/nvtx",
                        fmt::format("NVTX ranges of thread {}", lane.thread_id), process_uuid_, 1};
    rows.moments.tracks = {uuid};
    return rows;
  }

  // Viewers draw them beside the thread's row, as call stack samples.
  void samples(int64_t offset) {
    Stacks stacks(process_->stacks, out_);
    std::map<StackIndex, uint64_t> ids;
    for (const HostSample& sample : process_->samples) {
      const auto [id, fresh] = ids.try_emplace(sample.stack);
      if (fresh) id->second = stacks.callstack(sample.stack);
      out_.stack_sample(sample.time, pid_, offset + sample.thread, id->second);
      flush_if_large();
    }
  }

  // A flame graph, and what was held as a curve.
  void heap() {
    if (process_->heap.empty()) return;
    const std::vector<HeapPoint> curve = heap_curve(*process_);
    const uint64_t track =
        declare("heap", process_uuid_, "host memory allocated in the window (sampled)", 4, true);
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
    out_.heap_profile(process_->window_end, pid_, process_->heap.front().interval, sites);
  }

  LaneRows stream(const Lane& lane) {
    const uint64_t gpu = gpu_track(lane.device);
    const std::string path = fmt::format("gpu{}/{}/{}", lane.device, lane.context, lane.stream);
    std::string name = fmt::format("stream {}", lane.stream);
    if (lane.context > 1) name += fmt::format(" context {}", lane.context);
    if (!lane.thread_name.empty()) name += fmt::format(" \"{}\"", lane.thread_name);
    const auto rank = static_cast<int32_t>(std::min(lane.stream, 1000000u));
    LaneRows rows;
    rows.type = lane.type;
    rows.families[0] = {Overlap::apart, path, name, gpu, rank, {declare(path, gpu, name, rank)}};
    rows.families[1] = {Overlap::nest, path + "/annotations", name + " annotations", gpu, rank};
    const auto number = gpus_.emplace(std::pair(process_uuid_, lane.device), gpus_.size()).first;
    rows.queue = {out_.stage(fmt::format("GPU {} {}", number->second, name)), out_.context(pid_),
                  number->second};
    out_.define();
    return rows;
  }

  void curve(const GpuCurve& curve, int32_t number) {
    const uint64_t gpu = gpu_track(curve.device);
    const auto [track, fresh] =
        track_of(fmt::format("{}/gpu{}/{}", prefix_, curve.device, curve.name));
    if (fresh) {
      out_.track({track, gpu, curve.name, 2500000 + number, false, false, curve.unit});
    }
    for (const GpuCurve::Point& point : curve.points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(point.value);
      out_.end_event();
    }
  }

  // A row of an outside trace.
  LaneRows other(const Lane& lane) {
    const std::string path = fmt::format("other{}", lane.thread_id);
    LaneRows rows;
    rows.type = lane.type;
    rows.families[0] = {Overlap::nest, path, lane.thread_name,
                        process_uuid_, 5,    {declare(path, process_uuid_, lane.thread_name, 5)}};
    rows.moments = rows.families[0];
    return rows;
  }

  LaneRows device(const Lane& lane) {
    const uint64_t gpu = gpu_track(lane.device);
    const std::string path = fmt::format("gpu{}/sync", lane.device);
    LaneRows rows;
    rows.type = lane.type;
    rows.families[0] = {Overlap::apart, path, "synchronization", gpu, 2000000};
    rows.moments = {Overlap::nest, path + "/events", "events and memory", gpu, 2000001};
    return rows;
  }

  LaneRows overhead() {
    LaneRows rows;
    rows.type = LaneType::overhead;
    rows.families[0] = {Overlap::apart, "overhead", "CUPTI overhead", process_uuid_, 2};
    return rows;
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
    const uint64_t track = declare(path, process_uuid_, name, rank, true);
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
    const uint64_t gpu = gpu_track(series.device);
    const auto [track, fresh] =
        track_of(fmt::format("{}/gpu{}/{}", prefix_, series.device, text.name));
    if (fresh) {
      out_.track({track, gpu, text.name, rank, false, false, text.unit[0] ? text.unit : "1"});
    }
    for (const CounterSeries::Point& point : series.points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(static_cast<int64_t>(point.value));
      out_.end_event();
    }
  }

  void named_counter(const NamedCounter& series, size_t number) {
    const bool on_gpu = series.device != Shape::kAbsent;
    const uint64_t parent = on_gpu ? gpu_track(series.device) : process_uuid_;
    const std::string name =
        series.key.empty() || series.key == "value" ? series.name : series.name + " " + series.key;
    const uint64_t track = declare(fmt::format("counter{}/{}", number, name), parent, name,
                                   on_gpu ? 4000000 : 6, true);
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
        if (used[i]) declare_tracks(rows.families[i], state.splitters[i].tracks());
      }
      if (moments) declare_tracks(rows.moments, 1);
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

  // What does not fit on the usual track goes to tracks of its own beside it.
  void declare_tracks(LaneRows::Family& family, size_t count) {
    for (size_t i = family.tracks.size(); i < count; ++i) {
      family.tracks.push_back(i == 0 ? declare(family.path, family.parent, family.name, family.rank)
                                     : declare(fmt::format("{}/{}", family.path, i), family.parent,
                                               fmt::format("{} ({})", family.name, i + 1),
                                               family.rank));
    }
  }

  void flush_if_large() {
    if (text_.size() >= kMuchText) output_.write(text_);
  }

  const Trace& trace_;
  const Processes& processes_;
  std::string text_;  // packets that are not on their way to the file
  PacketWriter out_{text_};
  std::optional<SlicePackets> packets_;
  const Process* process_ = nullptr;
  std::map<std::string, int64_t> hosts_;
  std::map<std::pair<uint64_t, uint32_t>, size_t> gpus_;  // process and device -> number
  std::unordered_map<std::string, uint64_t> tracks_;      // by path
  std::string prefix_;
  uint64_t process_uuid_ = 0;
  int64_t pid_ = 0;
  ParallelOutput output_;  // last: its threads read the others
};

bool write_file(const Trace& trace, const Processes& processes, const std::string& path,
                Compression compression, ExportProgress& progress, std::string& error) {
  OutputFile file(path, compression);
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
  return write_file(trace, all, path, options.compression, progress, error);
}

bool write_perfetto_ranks(const Trace& trace, const std::string& path, const ExportOptions& options,
                          std::string& error) {
  if (!make_folder(path, error)) return false;
  std::map<std::string, Processes> files;  // by name
  for (const Process& process : trace.processes) {
    files[file_name_part(process.header.host()) + rank_or_pid(process.header)].push_back(&process);
  }
  ExportProgress progress(trace, options);
  for (const auto& [name, processes] : files) {
    const std::string file = path + "/" + name + ".pftrace";
    if (!write_file(trace, processes, file, Compression::none, progress, error)) return false;
  }
  return true;
}

}  // namespace gpuprof
