// SPDX-License-Identifier: Apache-2.0
// Tracks: per process its threads (calls and NVTX ranges), steps, memory and CUPTI's overhead; per
// process and device a parent "GPU n" with its streams and synchronization below it.
#include "formats/perfetto_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "formats/core/string_table.h"
#include "formats/gpu_curves.h"
#include "formats/names.h"
#include "formats/perfetto_packets.h"
#include "formats/perfetto_stacks.h"
#include "formats/slices.h"

namespace gpuprof {
namespace {

using perfetto::EventType;
using perfetto::PacketWriter;

constexpr uint64_t kProgressEvery = 1 << 16;
constexpr int64_t kHostStride = 1 << 22;  // Linux process ids are below this

uint64_t uuid_of(std::string_view text) {
  const uint64_t hash = hash_bytes(text.data(), text.size());
  return hash ? hash : 1;
}

bool is_async_range(const Shape& shape, const EventExtra& extra) {
  return shape.kind == Kind::nvtx_range && extra.address != 0;
}

std::string dim_text(const Dim3& dim) { return fmt::format("[{}, {}, {}]", dim.x, dim.y, dim.z); }

class PerfettoExport {
 public:
  PerfettoExport(const Trace& trace, OutputFile& file, const ExportOptions& options)
      : trace_(trace), out_(file), options_(options) {}

  void run() {
    int64_t start = 0;
    for (const Process& p : trace_.processes) {
      total_ += p.events.size();
      start = start ? std::min(start, p.window_begin) : p.window_begin;
    }
    out_.start(start);
    for (size_t i = 0; i < trace_.processes.size(); ++i) one_process(trace_.processes[i], i);
  }

 private:
  // Pids of different hosts may be equal; Perfetto knows one machine.
  int64_t host_number(const std::string& host) {
    const auto [at, fresh] = hosts_.emplace(host, static_cast<int64_t>(hosts_.size() % 512));
    return at->second;
  }

  void one_process(const Process& process, size_t number) {
    process_ = &process;
    stacks_.emplace(process.stacks, out_);
    flow_base_ = static_cast<uint64_t>(number + 1) << 32;
    collectives_ = collectives_by_kernel(process);
    const dump::Header& header = process.header;
    const int64_t offset = host_number(header.host()) * kHostStride;
    pid_ = offset + header.pid();
    prefix_ = fmt::format("{}/{}/{}", header.host(), header.pid(), header.os_start_time());
    process_uuid_ = uuid_of(prefix_);
    if (declared_.insert(process_uuid_).second) {
      out_.process_track(process_uuid_, pid_, process_title(process),
                         header.rank() >= 0 ? fmt::format("rank {}", header.rank()) : "",
                         process.window_begin);
    }
    steps();
    for (const Lane& lane : process.lanes) {
      switch (lane.type) {
        case LaneType::thread: thread(lane, offset); break;
        case LaneType::stream: stream(lane); break;
        case LaneType::device: device(lane); break;
        case LaneType::overhead: overhead(lane); break;
        case LaneType::other: other(lane); break;
      }
    }
    memory();
    int32_t curves = 0;
    for (const GpuCurve& found : gpu_curves(trace_, process)) curve(found, curves++);
    for (const CounterSeries& series : process_->counters) gpu_counter(series);
    for (size_t i = 0; i < process_->named_counters.size(); ++i) {
      named_counter(process_->named_counters[i], i);
    }
  }

  // Declares a track unless an earlier window of the process did.
  uint64_t declare(std::string_view path, uint64_t parent, std::string_view name, int32_t rank,
                   bool counter = false, bool ordered = false) {
    const uint64_t uuid = uuid_of(fmt::format("{}/{}", prefix_, path));
    if (declared_.insert(uuid).second) {
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
    if (header.rank() >= 0) {
      name += fmt::format(" (rank {})", header.rank());
    } else {
      name += fmt::format(" (pid {})", header.pid());
    }
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
      end_slice(track, step.end);
    }
  }

  void thread(const Lane& lane, int64_t offset) {
    const std::string path = fmt::format("thread{}", lane.thread_id);
    const uint64_t uuid = uuid_of(fmt::format("{}/{}", prefix_, path));
    if (declared_.insert(uuid).second) {
      out_.thread_track(uuid, pid_, offset + lane.thread_id, lane.thread_name,
                        process_->window_begin);
    }
    std::vector<Slice> calls, ranges;
    for (const Event& event : process_->lane_events(lane)) {
      const Shape& shape = trace_.shape(event);
      const EventIndex index = process_->index_of(event);
      if (is_instant(shape.kind)) {
        instant(uuid, index);
      } else {
        auto& list = is_async_range(shape, process_->extra(event)) ? ranges : calls;
        list.push_back({index, event.begin, event.end});
      }
    }
    slices(calls, Overlap::nest, uuid, path, uuid,
           fmt::format("thread {} overlapping", lane.thread_id));
    if (ranges.empty()) return;
    const std::string name = fmt::format("NVTX ranges of thread {}", lane.thread_id);
    const uint64_t track = declare(path + "/nvtx", process_uuid_, name, 1);
    slices(ranges, Overlap::nest, track, path + "/nvtx", process_uuid_, name);
  }

  void stream(const Lane& lane) {
    const uint64_t gpu = gpu_track(lane.device);
    const std::string path = fmt::format("gpu{}/{}/{}", lane.device, lane.context, lane.stream);
    std::string name = fmt::format("stream {}", lane.stream);
    if (lane.context > 1) name += fmt::format(" context {}", lane.context);
    const auto rank = static_cast<int32_t>(std::min(lane.stream, 1000000u));
    const uint64_t track = declare(path, gpu, name, rank);
    std::vector<Slice> work, annotations;
    for (const Slice& slice : gpu_slices(lane)) {
      const Kind kind = trace_.shape(process_->event(slice.event)).kind;
      (kind == Kind::gpu_annotation ? annotations : work).push_back(slice);
    }
    slices(work, Overlap::apart, track, path, gpu, name, rank);
    render_stages(work, lane, name);
    if (annotations.empty()) return;
    name += " annotations";
    slices(annotations, Overlap::nest, declare(path + "/annotations", gpu, name, rank),
           path + "/annotations", gpu, name, rank);
  }

  // The same for the pages that know GPUs.
  void render_stages(const std::vector<Slice>& work, const Lane& lane, const std::string& queue) {
    const auto gpu = gpus_.emplace(std::pair(process_uuid_, lane.device), gpus_.size()).first;
    const std::string title = fmt::format("GPU {} {}", gpu->second, queue);
    for (const Slice& slice : work) {
      const Event& event = process_->event(slice.event);
      out_.render_stage({flow_base_ | number(slice.event), static_cast<int32_t>(gpu->second), pid_,
                         title, trace_.text(trace_.shape(event).label), event.begin, event.end});
    }
  }

  void curve(const GpuCurve& curve, int32_t number) {
    const uint64_t gpu = gpu_track(curve.device);
    const uint64_t track = uuid_of(fmt::format("{}/gpu{}/{}", prefix_, curve.device, curve.name));
    if (declared_.insert(track).second) {
      out_.track({track, gpu, curve.name, 2500000 + number, false, false, curve.unit});
    }
    for (const GpuCurve::Point& point : curve.points) {
      out_.begin_event(EventType::counter, track, point.time);
      out_.counter(point.value);
      out_.end_event();
    }
  }

  // A row of an outside trace.
  void other(const Lane& lane) {
    const std::string path = fmt::format("other{}", lane.thread_id);
    const uint64_t track = declare(path, process_uuid_, lane.thread_name, 5);
    std::vector<Slice> ranges;
    for (const Event& event : process_->lane_events(lane)) {
      const EventIndex index = process_->index_of(event);
      if (is_instant(trace_.shape(event).kind)) {
        instant(track, index);
      } else {
        ranges.push_back({index, event.begin, event.end});
      }
    }
    slices(ranges, Overlap::nest, track, path, process_uuid_, lane.thread_name, 5);
  }

  void device(const Lane& lane) {
    const uint64_t gpu = gpu_track(lane.device);
    const std::string path = fmt::format("gpu{}/sync", lane.device);
    const std::string name = "synchronization";
    std::vector<Slice> syncs;
    for (const Slice& slice : gpu_slices(lane)) {
      const Kind kind = trace_.shape(process_->event(slice.event)).kind;
      if (kind == Kind::gpu_sync) {
        syncs.push_back(slice);
      } else {
        const uint64_t track = declare(path + "/events", gpu, "events and memory", 2000001);
        instant(track, slice.event);
      }
    }
    if (syncs.empty()) return;
    const uint64_t track = declare(path, gpu, name, 2000000);
    slices(syncs, Overlap::apart, track, path, gpu, name, 2000000);
  }

  void overhead(const Lane& lane) {
    const std::vector<Slice> work = gpu_slices(lane);
    if (work.empty()) return;
    const uint64_t track = declare("overhead", process_uuid_, "CUPTI overhead", 2);
    slices(work, Overlap::apart, track, "overhead", process_uuid_, "CUPTI overhead", 2);
  }

  void memory() {
    const MemoryCurves curves = memory_curves(trace_, *process_);
    counter(curves.device, "memory", "GPU memory allocated in the window", 3);
    counter(curves.host, "pinned", "pinned host memory allocated in the window", 4);
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
    }
  }

  void gpu_counter(const CounterSeries& series) {
    const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
    const auto rank = static_cast<int32_t>(3000000 + static_cast<int>(series.counter));
    const uint64_t gpu = gpu_track(series.device);
    const uint64_t track = uuid_of(fmt::format("{}/gpu{}/{}", prefix_, series.device, text.name));
    if (declared_.insert(track).second) {
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

  std::vector<Slice> gpu_slices(const Lane& lane) const {
    std::vector<Slice> found;
    for (const Event& event : process_->lane_events(lane)) {
      if (drawable(trace_.shape(event))) {
        found.push_back({process_->index_of(event), event.begin, event.end});
      }
    }
    return found;
  }

  // What does not fit on `track` goes to tracks of its own beside it.
  void slices(const std::vector<Slice>& all, Overlap overlap, uint64_t track,
              const std::string& path, uint64_t parent, const std::string& name, int32_t rank = 0) {
    const auto tracks = split_tracks(all, overlap);
    for (size_t i = 0; i < tracks.size(); ++i) {
      if (i > 0) {
        track = declare(fmt::format("{}/{}", path, i), parent, fmt::format("{} ({})", name, i + 1),
                        rank);
      }
      one_track(tracks[i], track);
    }
  }

  void one_track(const std::vector<Slice>& slices, uint64_t track) {
    std::vector<int64_t> open;
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.begin) {
        end_slice(track, open.back());
        open.pop_back();
      }
      begin_slice(track, slice);
      open.push_back(slice.end);
    }
    for (; !open.empty(); open.pop_back()) end_slice(track, open.back());
  }

  void end_slice(uint64_t track, int64_t time) {
    out_.begin_event(EventType::slice_end, track, time);
    out_.end_event();
  }

  void instant(uint64_t track, EventIndex index) {
    const Event& event = process_->event(index);
    out_.begin_event(EventType::instant, track, event.begin);
    contents(event);
    out_.end_event();
    progress();
  }

  void begin_slice(uint64_t track, const Slice& slice) {
    const Event& event = process_->event(slice.event);
    const Shape& shape = trace_.shape(event);
    out_.begin_event(EventType::slice_begin, track, slice.begin);
    contents(event);
    if (shape.kind == Kind::launch || shape.kind == Kind::copy || shape.kind == Kind::set) {
      for (EventIndex work = event.partner; work != EventIndex::none;
           work = process_->event(work).next_sibling) {
        if (has_flow(work)) out_.flow(flow_base_ | number(work));
      }
    } else if (has_flow(slice.event)) {
      out_.terminating_flow(flow_base_ | number(slice.event));
    }
    if (slice.end < event.end) out_.annotate("true end (ns)", static_cast<uint64_t>(event.end));
    out_.end_event();
    progress();
  }

  // Whether GPU event `work` is joined to a call that launched it.
  bool has_flow(EventIndex work) const {
    const Event& event = process_->event(work);
    const Shape& shape = trace_.shape(event);
    if (!is_stream_work(shape.kind) || event.partner == EventIndex::none || !drawable(shape))
      return false;
    const Kind cause = trace_.shape(process_->event(event.partner)).kind;
    return cause == Kind::launch || cause == Kind::copy || cause == Kind::set;
  }

  void contents(const Event& event) {
    const Shape& shape = trace_.shape(event);
    const EventExtra& extra = process_->extra(event);
    out_.name(trace_.text(shape.label));
    out_.category(category_of(trace_, shape));
    if (event.correlation) out_.annotate("correlation", event.correlation);
    if (const EventIndex op = process_->operator_of(event); op != EventIndex::none) {
      out_.annotate("operator", trace_.text(trace_.shape(process_->event(op)).label));
    }
    if (extra.stack != StackIndex::none) stacks_->write(extra.stack);
    if (extra.args != StringIndex::empty) out_.annotate_once("args", trace_.text(extra.args));
    if (is_gpu_kind(shape.kind)) {
      gpu_contents(event, shape, extra);
    } else {
      host_contents(shape, extra);
    }
    if (shape.flags & kFlagFromCallback)
      out_.annotate("seen by", std::string_view("CUPTI callback"));
    if (shape.flags & kFlagCaptured) out_.annotate("captured into a graph", uint64_t{1});
    if (shape.flags & kFlagOpenEnd) out_.annotate("open at window end", uint64_t{1});
  }

  void host_contents(const Shape& shape, const EventExtra& extra) {
    if (shape.result) out_.annotate_signed("result", shape.result);
    switch (shape.kind) {
      case Kind::launch:
        if (shape.detail != StringIndex::empty) out_.annotate("kernel", demangled(shape.detail));
        launch_shape(shape);
        break;
      case Kind::copy:
      case Kind::set:
      case Kind::alloc:
      case Kind::dealloc:
        if (extra.bytes) out_.annotate("bytes", extra.bytes);
        if (extra.address) out_.annotate_pointer("address", extra.address);
        if (extra.address2) out_.annotate_pointer("source", extra.address2);
        break;
      case Kind::sync:
      case Kind::event:
      case Kind::stream:
        if (extra.address2) out_.annotate_pointer("event", extra.address2);
        break;
      case Kind::collective: collective(shape, extra); break;
      case Kind::op:
      case Kind::annotation: operator_contents(shape, extra); return;
      case Kind::tensor:
        out_.annotate_signed("bytes", static_cast<int64_t>(extra.bytes));
        if (extra.address) out_.annotate_pointer("address", extra.address);
        return;
      case Kind::nvtx_range:
      case Kind::nvtx_mark:
        if (shape.detail != StringIndex::empty) out_.annotate("domain", trace_.text(shape.detail));
        if (shape.category) out_.annotate("nvtx category", shape.category);
        if (extra.value) out_.annotate("payload", extra.value);
        return;
      default: break;
    }
    if (shape.stream_handle) out_.annotate_pointer("stream", shape.stream_handle);
  }

  void operator_contents(const Shape& shape, const EventExtra& extra) {
    if (extra.value) out_.annotate("external id", extra.value);
    if (extra.address) out_.annotate("sequence number", extra.address - 1);
    const std::pair<const char*, StringIndex> texts[] = {{"input dims", shape.input_dims},
                                                         {"input types", shape.input_types},
                                                         {"call stack", shape.call_stack},
                                                         {"modules", shape.hierarchy}};
    for (const auto& [key, text] : texts) {
      if (text != StringIndex::empty) out_.annotate(key, trace_.text(text));
    }
  }

  void gpu_contents(const Event& event, const Shape& shape, const EventExtra& extra) {
    switch (shape.kind) {
      case Kind::gpu_kernel:
        launch_shape(shape);
        out_.annotate("registers per thread", shape.registers_per_thread);
        out_.annotate("static shared bytes", shape.static_shared_bytes);
        if (shape.cluster_x * shape.cluster_y * shape.cluster_z > 1) {
          out_.annotate("cluster", dim_text({shape.cluster_x, shape.cluster_y, shape.cluster_z}));
        }
        break;
      case Kind::gpu_graph: break;
      case Kind::gpu_copy:
      case Kind::gpu_set: out_.annotate("bytes", extra.bytes); break;
      case Kind::gpu_sync:
        if (shape.stream != Shape::kAbsent) out_.annotate("stream", shape.stream);
        break;
      case Kind::gpu_memory:
        out_.annotate("bytes", extra.bytes);
        out_.annotate_pointer("address", extra.address);
        break;
      default: return;
    }
    if (shape.graph) {
      out_.annotate("graph", shape.graph);
      if (extra.value) out_.annotate("graph node", extra.value);
    }
    if (const GraphNode* const node = process_->graph_node(shape, extra)) {
      out_.annotate("captured by", node->api);
      out_.annotate_signed("captured before window (ns)", process_->window_begin - node->captured);
      out_.annotate("capture", node->capture);
      if (node->stack != StackIndex::none) stacks_->write(node->stack);
    }
    const auto found = collectives_.find(number(process_->index_of(event)));
    if (found == collectives_.end()) return;
    const EventIndex call = process_->collective_kernels[found->second].collective;
    const Shape& collective_shape = trace_.shape(process_->event(call));
    out_.annotate("collective", trace_.text(collective_shape.name));
    collective(collective_shape, process_->extra(process_->event(call)));
  }

  void collective(const Shape& shape, const EventExtra& extra) {
    out_.annotate("count", extra.bytes);
    const NcclTypeName& type = nccl_type(shape.data_type);
    if (type.bytes) {
      out_.annotate("data type", type.nccl);
      out_.annotate("message bytes", extra.bytes * type.bytes);
    }
    if (shape.operation != Shape::kAbsent) {
      out_.annotate("operation", nccl_operation_name(shape.operation));
    }
    if (shape.peer != Shape::kAbsent) out_.annotate("peer", shape.peer);
    if (shape.rank_count) out_.annotate("ranks", shape.rank_count);
    out_.annotate_pointer("communicator", shape.communicator);
    out_.annotate("sequence", extra.value);
  }

  void launch_shape(const Shape& shape) {
    if (shape.grid.x) {
      const auto [at, fresh] = dims_.try_emplace(&shape);
      if (fresh) at->second = {dim_text(shape.grid), dim_text(shape.block)};
      out_.annotate("grid", std::string_view(at->second.first));
      out_.annotate("block", std::string_view(at->second.second));
    }
    if (shape.dynamic_shared_bytes) {
      out_.annotate("dynamic shared bytes", shape.dynamic_shared_bytes);
    }
  }

  std::string_view demangled(StringIndex mangled) {
    const auto [at, fresh] = demangled_.try_emplace(mangled);
    if (fresh) at->second = demangle(trace_.text(mangled));
    return at->second;
  }

  void progress() {
    if (++done_ % kProgressEvery == 0 && options_.progress) options_.progress(done_, total_);
  }

  const Trace& trace_;
  PacketWriter out_;
  const ExportOptions& options_;
  const Process* process_ = nullptr;
  std::optional<perfetto::Stacks> stacks_;
  std::map<std::string, int64_t> hosts_;
  std::map<std::pair<uint64_t, uint32_t>, size_t> gpus_;  // process and device -> number
  std::set<uint64_t> declared_;
  std::map<uint32_t, uint32_t> collectives_;
  std::map<StringIndex, std::string> demangled_;
  std::unordered_map<const Shape*, std::pair<std::string, std::string>> dims_;  // grid, block
  std::string prefix_;
  uint64_t process_uuid_ = 0, flow_base_ = 0;
  int64_t pid_ = 0;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace

bool write_perfetto(const Trace& trace, const std::string& path, const ExportOptions& options,
                    std::string& error) {
  OutputFile file(path, options.compression);
  if (file.ok()) PerfettoExport(trace, file, options).run();
  if (file.commit()) return true;
  error = file.error();
  return false;
}

}  // namespace gpuprof
