// SPDX-License-Identifier: Apache-2.0
// Rows: threads under the process's pid; streams under a pid for each GPU. Slices of a row nest or
// follow each other: what does not fit goes to a further row of the same thread or stream.
#include "formats/kineto_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "formats/chrome_args.h"
#include "formats/gpu_annotations.h"
#include "formats/json_text.h"
#include "formats/kineto_ids.h"
#include "formats/names.h"
#include "formats/slices.h"
#include "formats/stack_frames.h"

namespace gpuprof {
namespace {

// Half of Kineto's quarter of a year: readers hold microseconds in doubles, and from 2^42 on (the
// second half of the quarter) these no longer tell nanoseconds apart, so that calls overlap.
constexpr int64_t kBaseUnit = int64_t{7'889'238} * 1'000'000'000 / 2;
constexpr uint64_t kRowStride = 10'000'000;  // further rows of a thread or stream
constexpr int64_t kStepGapNs = 2;
constexpr uint64_t kOtherRow = 3'000'000'000;  // rows that are no thread's
constexpr uint64_t kRowsOfOther = 1'000;
constexpr uint64_t kSyncRow = 1'000'000;  // as Kineto numbers the row beside a stream
// Says that an event repeats what others say: our own reader passes it over.
constexpr std::string_view kDerived = "\"gpuprof derived\":1";
constexpr uint32_t kDefaultStreamRow = 999'999;  // viewers take thread 0 for the process itself

int64_t first_time(const Trace& trace) {
  int64_t first = trace.processes.empty() ? 0 : trace.processes.front().window_begin;
  for (const Process& process : trace.processes) first = std::min(first, process.window_begin);
  return first;
}

class KinetoDocument {
 public:
  KinetoDocument(const Trace& trace, std::span<const Process* const> processes, OutputFile& file,
                 KinetoProgress& progress, KinetoSpelling spelling)
      : trace_(trace),
        processes_(processes),
        json_(file),
        progress_(progress),
        spelling_(spelling),
        ids_(assign_kineto_ids(processes)) {}

  void run(const std::string& path) {
    find_times();
    json_.raw("{\n\"schemaVersion\": 1,\n\"producer\": \"gpuprof\",\n\"deviceProperties\": [");
    device_properties();
    json_.raw("],\n");
    identity();
    json_.raw("\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ").number(base_);
    json_.raw(",\n\"traceEvents\": [\n");
    for (const Process* process : processes_) metadata(*process);
    for (const Process* process : processes_) one_process(*process);
    json_.raw("\n],\n");
    if (!stack_frames_.empty()) {
      json_.raw("\"stackFrames\": ");
      stack_frames_.write(json_);
      json_.raw(",\n");
    }
    json_.raw("\"traceName\": ").string(path).raw("\n}\n");
  }

 private:
  void find_times() {
    bool any = false;
    for (const Process* process : processes_) {
      begin_ = any ? std::min(begin_, process->window_begin) : process->window_begin;
      end_ = any ? std::max(end_, process->window_end) : process->window_end;
      any = true;
    }
    // Of the whole trace, so that the files of its ranks share it.
    const int64_t first = first_time(trace_);
    base_ = first > 0 ? first / kBaseUnit * kBaseUnit : 0;
  }

  // Readers take a device's place in the array for its id.
  void device_properties() {
    std::map<uint32_t, const dump::Device*> known;
    for (const Process* process : processes_) {
      for (const auto& [device, pid] : ids_.at(key_of(*process)).gpus) {
        if (pid < 4096) known[pid] = device_of(*process, device);
      }
    }
    const dump::Device none;
    const uint32_t count = known.empty() ? 0 : known.rbegin()->first + 1;
    for (uint32_t id = 0; id < count; ++id) {
      const dump::Device* const found = known.contains(id) ? known[id] : nullptr;
      const dump::Device& d = found ? *found : none;
      json_.raw(id ? ",\n" : "\n").raw("{\"id\": ").number(id);
      json_.raw(", \"name\": ").string(d.name().empty() ? "unknown" : d.name());
      const std::pair<const char*, uint64_t> numbers[] = {
          {"totalGlobalMem", d.total_memory_bytes()},
          {"computeMajor", d.compute_major()},
          {"computeMinor", d.compute_minor()},
          {"maxThreadsPerBlock", d.max_threads_per_block()},
          {"maxThreadsPerMultiprocessor", d.max_threads_per_multiprocessor()},
          {"regsPerBlock", d.registers_per_block()},
          {"warpSize", d.warp_size()},
          {"sharedMemPerBlock", d.shared_bytes_per_block()},
          {"numSms", d.multiprocessors()},
          {"regsPerMultiprocessor", d.registers_per_multiprocessor()},
          {"sharedMemPerBlockOptin", d.shared_bytes_per_block_optin()},
          {"sharedMemPerMultiprocessor", d.shared_bytes_per_multiprocessor()}};
      for (const auto& [name, value] : numbers) {
        json_.raw(", \"").raw(name).raw("\": ").number(value);
      }
      json_.raw("}");
    }
  }

  // Of a single rank: readers look for "rank" on a line of its own, before the events.
  void identity() {
    if (ids_.size() != 1) return;
    const dump::Header& h = processes_.front()->header;
    json_.raw("\"host_name\": ").string(h.host()).raw(",\n");
    const Process& first = *processes_.front();
    if (!first.metadata.empty()) json_.raw(first.metadata).raw(",\n");
    if (h.rank() < 0) return;
    json_.raw("\"distributedInfo\": {\n");
    json_.raw(first.distributed.empty() ? "\"backend\": \"nccl\"" : first.distributed);
    json_.raw(",\n\"rank\": ").number(h.rank());
    json_.raw(",\n\"world_size\": ").number(std::max(h.world_size(), 1)).raw("\n},\n");
  }

  JsonText& event(const char* phase) {
    json_.flush_if_large();
    json_.raw(first_ ? "{\"ph\":\"" : ",\n{\"ph\":\"").raw(phase).raw("\"");
    first_ = false;
    return json_;
  }

  void row(uint32_t pid, uint64_t tid) {
    json_.raw(",\"pid\":").number(pid).raw(",\"tid\":").number(tid);
  }

  void named(const char* what, uint32_t pid, uint64_t tid, const char* key,
             std::string_view value) {
    event("M").raw(",\"name\":\"").raw(what).raw("\",\"ts\":").microseconds(begin_ - base_);
    row(pid, tid);
    json_.raw(",\"args\":{\"").raw(key).raw("\":").string(value).raw("}}");
  }

  void sorted(const char* what, uint32_t pid, uint64_t tid, uint64_t index) {
    event("M").raw(",\"name\":\"").raw(what).raw("\",\"ts\":").microseconds(begin_ - base_);
    row(pid, tid);
    json_.raw(",\"args\":{\"sort_index\":").number(index).raw("}}");
  }

  void metadata(const Process& process) {
    const KinetoIds& ids = ids_.at(key_of(process));
    if (!described_.insert(ids.pid).second) return;
    const std::string title = process_title(process);
    named("process_name", ids.pid, 0, "name", title);
    named("process_labels", ids.pid, 0, "labels", "CPU");
    sorted("process_sort_index", ids.pid, 0, ids.pid);
    for (const auto& [device, pid] : ids.gpus) {
      named("process_name", pid, 0, "name", title);
      named("process_labels", pid, 0, "labels", "GPU " + std::to_string(device));
      sorted("process_sort_index", pid, 0, 5'000'000 + uint64_t{pid});
    }
  }

  // A row's name, once.
  void describe_row(uint32_t pid, uint64_t tid, const std::string& name, uint64_t index) {
    if (!rows_.emplace(pid, tid).second) return;
    named("thread_name", pid, tid, "name", name);
    sorted("thread_sort_index", pid, tid, index);
  }

  void one_process(const Process& process) {
    process_ = &process;
    ids_here_ = &ids_.at(key_of(process));
    flow_base_ = number_++ << 32;
    const ChromeArgs args(trace_, process, next_external_id_);
    args_ = &args;
    const auto annotations = gpu_annotations(trace_, process);
    span();
    if (std::none_of(process.lanes.begin(), process.lanes.end(), [&](const Lane& lane) {
          return lane.type == LaneType::thread && lane.thread_id == main_thread(process);
        })) {
      host_rows({}, main_thread(process), "");
    }
    for (const Lane& lane : process.lanes) {
      switch (lane.type) {
        case LaneType::thread: thread(lane); break;
        case LaneType::stream: {
          const auto found = annotations.find(static_cast<LaneIndex>(&lane - process.lanes.data()));
          stream(lane, found == annotations.end() ? std::vector<Slice>() : found->second);
          break;
        }
        case LaneType::device: device(lane); break;
        case LaneType::overhead: overhead(lane); break;
        case LaneType::other: other(lane); break;
      }
    }
    forward_backward();
    memory();
    for (const CounterSeries& series : process_->counters) gpu_counter(series);
    for (const NamedCounter& series : process_->named_counters) named_counter(series);
  }

  void span() {
    if (spanned_) return;
    spanned_ = true;
    event("X").raw(",\"cat\":\"Trace\",\"ts\":").microseconds(begin_ - base_);
    json_.raw(",\"dur\":").microseconds(end_ - begin_);
    json_.raw(
        ",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\",\"name\":\"PyTorch Profiler (0)\","
        "\"args\":{\"Op count\":0}}");
  }

  // `stack`: its node in stackFrames; 0: none.
  void slice(std::string_view category, std::string_view name, uint32_t pid, uint64_t tid,
             int64_t begin, int64_t end, uint32_t stack = 0) {
    event("X").raw(",\"cat\":").string(category).raw(",\"name\":").string(name);
    row(pid, tid);
    json_.raw(",\"ts\":").microseconds(begin - base_).raw(",\"dur\":").microseconds(end - begin);
    if (stack) json_.raw(",\"sf\":\"").number(stack).raw("\"");
    json_.raw(",\"args\":");
  }

  void flow(const char* phase, uint32_t correlation, uint32_t pid, uint64_t tid, int64_t time) {
    event(phase).raw(",\"id\":").number(flow_base_ + correlation);
    row(pid, tid);
    json_.raw(",\"ts\":").microseconds(time - base_).raw(",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
    json_.raw(*phase == 'f' ? ",\"bp\":\"e\"}" : "}");
  }

  void thread(const Lane& lane) {
    std::vector<Slice> slices;
    for (const Event& e : process_->lane_events(lane)) {
      if (is_instant(trace_.shape(e).kind)) {
        mark(e, lane.thread_id);
      } else {
        slices.push_back({process_->index_of(e), e.begin, e.end});
      }
    }
    host_rows(std::move(slices), lane.thread_id, lane.thread_name);
  }

  // A row of an outside trace that is no thread.
  void other(const Lane& lane) {
    const uint64_t tid = kOtherRow + lane.thread_id * uint64_t{kRowsOfOther};
    std::vector<Slice> slices;
    for (const Event& e : process_->lane_events(lane)) {
      if (is_instant(trace_.shape(e).kind)) {
        mark(e, tid);
      } else {
        slices.push_back({process_->index_of(e), e.begin, e.end});
      }
    }
    const auto rows = split_tracks(slices, Overlap::nest);
    for (size_t i = 0; i < rows.size(); ++i) {
      describe_row(ids_here_->pid, tid + i, lane.thread_name, tid + i);
      for (const Slice& s : rows[i]) host_slice(s, tid + i);
    }
  }

  // Steps are slices of the main thread, among its calls; EventIndex::none marks them.
  void host_rows(std::vector<Slice> slices, uint32_t thread, const std::string& thread_name) {
    const std::span<const Step> steps = process_->window_steps();
    if (thread == main_thread(*process_) && !process_->steps_are_events) {
      for (const Step& step : steps) slices.push_back({EventIndex::none, step.begin, step.end});
      std::stable_sort(slices.begin(), slices.end(), earlier);
    }
    const auto rows = split_tracks(slices, Overlap::nest);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].empty()) continue;
      const uint64_t tid = thread + i * kRowStride;
      std::string name = "thread " + std::to_string(thread) + " (" + thread_name + ")";
      if (i) name += " overlapping " + std::to_string(i);
      describe_row(ids_here_->pid, tid, name, tid);
      for (const Slice& s : rows[i]) {
        s.event == EventIndex::none ? step_slice(s, steps, tid) : host_slice(s, tid);
      }
    }
  }

  void step_slice(const Slice& s, std::span<const Step> steps, uint64_t tid) {
    const auto step = std::find_if(steps.begin(), steps.end(), [&](const Step& candidate) {
      return candidate.begin == s.begin && candidate.end >= s.end;
    });
    if (step == steps.end()) return;
    // A reader's sums of floating-point microseconds are off by a nanosecond; steps that touch
    // would overlap.
    const bool touches = step + 1 != steps.end() && step[1].begin == s.end;
    const int64_t end = touches ? std::max(s.begin, s.end - kStepGapNs) : s.end;
    slice("user_annotation", "ProfilerStep#" + std::to_string(step->step), ids_here_->pid, tid,
          s.begin, end);
    json_.raw("{\"External id\":").number(next_external_id_++);
    json_.raw(",\"gpuprof step ns\":").number(s.end - s.begin).raw("}}");
  }

  void host_slice(const Slice& s, uint64_t tid) {
    const Event& e = process_->event(s.event);
    const Shape& shape = trace_.shape(e);
    std::string_view name = trace_.text(shape.label);
    if (shape.kind == Kind::collective) name = collective_name(name).annotation;
    const std::string_view category = host_category(shape, name);
    if (category == "cuda_runtime") name = plain_runtime_name(name);
    const StackIndex stack = process_->extra(e).stack;
    const bool call = category == "cuda_runtime" || category == "cuda_driver";
    const bool respelt = call && spelling_ == KinetoSpelling::tensorboard;
    slice(respelt ? "Runtime" : category, name, ids_here_->pid, tid, s.begin, s.end,
          stack_frames_.node_of(process_->stacks, stack));
    args_->host(json_, e);
    json_.raw("}");
    if (launches_work(e) && args_->shows_correlation(s.event)) {
      flow("s", e.correlation, ids_here_->pid, tid, s.begin);
    }
    progress();
  }

  // torch-tb-profiler 0.4 looks for data loaders among operators only.
  std::string_view host_category(const Shape& shape, std::string_view name) const {
    if (shape.kind == Kind::nvtx_range && is_data_loader(name)) return "cpu_op";
    const bool annotation = shape.kind == Kind::nvtx_range || shape.kind == Kind::collective ||
                            shape.domain == ApiDomain::nccl;
    return annotation ? "user_annotation" : category_of(trace_, shape);
  }

  // Whether a call has work on a stream that is drawn.
  bool launches_work(const Event& call) const {
    const Kind cause = trace_.shape(call).kind;
    if (cause != Kind::launch && cause != Kind::copy && cause != Kind::set) return false;
    for (EventIndex at = call.partner; at != EventIndex::none;
         at = process_->event(at).next_sibling) {
      if (is_stream_work(process_->event(at))) return true;
    }
    return false;
  }

  bool is_stream_work(const Event& e) const {
    const Shape& shape = trace_.shape(e);
    return gpuprof::is_stream_work(shape.kind) && drawable(shape);
  }

  void mark(const Event& e, uint64_t thread) {
    const Shape& shape = trace_.shape(e);
    const bool ours = shape.kind == Kind::nvtx_mark;
    event("i")
        .raw(",\"cat\":")
        .string(ours ? "cpu_instant_event" : category_of(trace_, shape))
        .raw(shape.value == 'g'   ? ",\"s\":\"g\",\"name\":"
             : shape.value == 'p' ? ",\"s\":\"p\",\"name\":"
                                  : ",\"s\":\"t\",\"name\":")
        .string(trace_.text(shape.label));
    row(ids_here_->pid, thread);
    json_.raw(",\"ts\":").microseconds(e.begin - base_).raw(",\"args\":");
    args_->host(json_, e);
    json_.raw("}");
    progress();
  }

  // Work that overlaps other work of its stream goes to a row of its own, and so that tools which
  // expect a stream's work one after the other agree, to a stream of its own.
  void stream(const Lane& lane, std::vector<Slice> annotations) {
    const uint32_t pid = ids_here_->gpus.at(lane.device);
    std::vector<Slice> slices;
    for (const Event& e : process_->lane_events(lane)) {
      const bool annotation = trace_.shape(e).kind == Kind::gpu_annotation;
      if (annotation) annotations.push_back({process_->index_of(e), e.begin, e.end});
      if (is_stream_work(e)) slices.push_back({process_->index_of(e), e.begin, e.end});
    }
    std::stable_sort(annotations.begin(), annotations.end(), earlier);
    auto rows = split_tracks(slices, Overlap::apart);
    std::vector<Slice> crossing;
    const auto around = annotations_around(annotations, rows[0], crossing);
    const auto work = rows[0].insert(rows[0].begin(), around.begin(), around.end());
    std::inplace_merge(rows[0].begin(), work + static_cast<std::ptrdiff_t>(around.size()),
                       rows[0].end(), earlier);
    for (auto& row : split_tracks(crossing, Overlap::nest)) rows.push_back(std::move(row));
    const uint32_t stream = lane.stream ? lane.stream : kDefaultStreamRow;
    const size_t first = context_number(*process_, lane) * kMaxTracks;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].empty()) continue;
      const uint64_t tid = stream + (first + i) * kRowStride;
      std::string name = "stream " + std::to_string(lane.stream) + " ";
      if (first) name += "context " + std::to_string(lane.context) + " ";
      if (i) name += "overlapping " + std::to_string(i);
      describe_row(pid, tid, name, tid);
      for (const Slice& s : rows[i]) gpu_slice(s, pid, tid, first + i ? tid : lane.stream);
    }
  }

  void gpu_slice(const Slice& s, uint32_t pid, uint64_t tid, uint64_t stream) {
    const Event& e = process_->event(s.event);
    const Shape& shape = trace_.shape(e);
    if (!is_gpu_kind(shape.kind)) {
      slice("gpu_user_annotation", trace_.text(shape.label), pid, tid, s.begin, s.end);
      json_.raw("{").raw(kDerived).raw("}}");
      return;
    }
    // Of a graph's node: where it was captured.
    const GraphNode* const node = process_->graph_node(shape, process_->extra(e));
    slice(category_of(trace_, shape), trace_.text(shape.label), pid, tid, s.begin, s.end,
          node ? stack_frames_.node_of(process_->stacks, node->stack) : 0);
    args_->gpu(json_, e, {pid, stream, device_of(*process_, process_->lane(e).device)});
    json_.raw("}");
    const bool caused = e.partner != EventIndex::none &&
                        launches_work(process_->event(e.partner)) &&
                        args_->shows_correlation(e.partner);
    if (caused) flow("f", e.correlation, pid, tid, s.begin);
    progress();
  }

  // Only kinds that Kineto's readers know: they stumble over others.
  void device(const Lane& lane) {
    const uint32_t pid = ids_here_->gpus.at(lane.device);
    std::map<uint32_t, std::vector<Slice>> by_stream;
    for (const Event& e : process_->lane_events(lane)) {
      const Shape& shape = trace_.shape(e);
      const bool known = shape.cupti_type >= 1 && shape.cupti_type <= 4;
      if (shape.kind != Kind::gpu_sync || !known || !drawable(shape)) continue;
      const uint32_t stream = shape.stream == Shape::kAbsent ? 0 : shape.stream;
      by_stream[stream].push_back({process_->index_of(e), e.begin, e.end});
    }
    for (const auto& [stream, slices] : by_stream) {
      const auto rows = split_tracks(slices, Overlap::apart);
      for (size_t i = 0; i < rows.size(); ++i) {
        const uint64_t tid = stream + kSyncRow + i * kRowStride;
        const std::string name =
            stream ? "stream " + std::to_string(stream) + " (sync)" : std::string("device (sync)");
        describe_row(pid, tid, name, stream ? stream : kSyncRow);
        for (const Slice& s : rows[i]) {
          const Event& e = process_->event(s.event);
          slice("cuda_sync", trace_.text(trace_.shape(e).label), pid, tid, s.begin, s.end);
          args_->sync(json_, e, pid);
          json_.raw("}");
          progress();
        }
      }
    }
  }

  void overhead(const Lane& lane) {
    std::vector<Slice> slices;
    for (const Event& e : process_->lane_events(lane)) {
      if (drawable(trace_.shape(e))) slices.push_back({process_->index_of(e), e.begin, e.end});
    }
    if (slices.empty()) return;
    const uint32_t pid = ids_here_->overhead_pid;
    named("process_name", pid, 0, "name", "CUPTI Overhead");
    sorted("process_sort_index", pid, 0, 0x100000A);
    const auto rows = split_tracks(slices, Overlap::apart);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const Slice& s : rows[i]) {
        const Shape& shape = trace_.shape(process_->event(s.event));
        slice("overhead", trace_.text(shape.label), pid, 1 + i, s.begin, s.end);
        json_.raw("{}}");
        progress();
      }
    }
  }

  // Arrows from operators to what they have in the backward pass.
  void forward_backward() {
    for (const ForwardBackward& pair : process_->forward_backward) {
      for (const bool start : {true, false}) {
        const Event& e = process_->event(start ? pair.forward : pair.backward);
        const Lane& lane = process_->lane(e);
        if (lane.type != LaneType::thread) continue;
        event(start ? "s" : "f").raw(",\"id\":").number(pair.id);
        row(ids_here_->pid, lane.thread_id);
        json_.raw(",\"ts\":").microseconds(e.begin - base_);
        json_.raw(",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"").raw(start ? "}" : ",\"bp\":\"e\"}");
      }
    }
  }

  void memory() {
    const MemoryCurves curves = memory_curves(trace_, *process_);
    for (const MemoryPoint& point : curves.device) {
      const Event& e = process_->event(point.event);
      const Lane& lane =
          process_->lane(e.partner != EventIndex::none && is_gpu_kind(trace_.shape(e).kind)
                             ? process_->event(e.partner)
                             : e);
      const uint32_t thread =
          lane.type == LaneType::thread ? lane.thread_id : main_thread(*process_);
      event("i").raw(",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\"");
      row(ids_here_->pid, thread);
      json_.raw(",\"ts\":").microseconds(point.time - base_);
      json_.raw(",\"args\":{\"Total Reserved\":").number(point.total);
      json_.raw(",\"Total Allocated\":").number(point.total);
      json_.raw(",\"Bytes\":").number(point.change);
      json_.raw(",\"Addr\":").number(process_->extra(e).address);
      json_.raw(",\"Device Id\":").number(gpu_of(e)).raw(",\"Device Type\":1,");
      const Shape& shape = trace_.shape(e);
      if (is_gpu_kind(shape.kind)) {
        json_.raw("\"memory operation\":").number(shape.cupti_type);
        json_.raw(",\"memory kind\":").number(shape.memory_kind);
        json_.raw(",\"context\":").number(shape.context);
        if (shape.stream != Shape::kAbsent) json_.raw(",\"stream\":").number(shape.stream);
        json_.raw(",\"inner correlation\":").number(e.correlation).raw("}}");
      } else {
        json_.raw(kDerived).raw("}}");
      }
    }
  }

  void gpu_counter(const CounterSeries& series) {
    const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
    const auto gpu = ids_here_->gpus.find(series.device);
    const uint32_t pid = gpu == ids_here_->gpus.end() ? ids_here_->pid : gpu->second;
    for (const CounterSeries::Point& point : series.points) {
      event("C")
          .raw(",\"cat\":\"hardware_counters\",\"name\":")
          .string(fmt::format("GPU {} {}", series.device, text.name));
      json_.raw(",\"pid\":").number(pid);
      json_.raw(",\"ts\":").microseconds(point.time - base_);
      json_.raw(",\"args\":{").string(text.unit[0] ? text.unit : "value").raw(":");
      json_.number(point.value).raw("}}");
      progress();
    }
  }

  void named_counter(const NamedCounter& series) {
    const auto gpu = ids_here_->gpus.find(series.device);
    const uint32_t pid = gpu == ids_here_->gpus.end() ? ids_here_->pid : gpu->second;
    for (const NamedCounter::Point& point : series.points) {
      event("C").raw(",\"cat\":");
      json_.string(series.category.empty() ? "hardware_counters" : series.category);
      json_.raw(",\"name\":").string(series.name).raw(",\"pid\":").number(pid);
      json_.raw(",\"ts\":").microseconds(point.time - base_).raw(",\"args\":{");
      json_.string(series.key).raw(":").shortest(point.value).raw("}}");
      progress();
    }
  }

  // The GPU that an allocation is on: CUPTI says; a call alone does not where there are several.
  uint32_t gpu_of(const Event& e) const {
    const Lane& lane = process_->lane(e);
    if (lane.type == LaneType::device) return ids_here_->gpus.at(lane.device);
    return ids_here_->gpus.empty() ? 0 : ids_here_->gpus.begin()->second;
  }

  void progress() { progress_.step(); }

  const Trace& trace_;
  const std::span<const Process* const> processes_;
  JsonText json_;
  KinetoProgress& progress_;
  const KinetoSpelling spelling_;
  const std::map<ProcessKey, KinetoIds> ids_;
  StackFrames stack_frames_;
  std::set<uint32_t> described_;
  std::set<std::pair<uint32_t, uint64_t>> rows_;
  const Process* process_ = nullptr;
  const KinetoIds* ids_here_ = nullptr;
  const ChromeArgs* args_ = nullptr;
  int64_t base_ = 0, begin_ = 0, end_ = 0;
  uint64_t number_ = 0, flow_base_ = 0, next_external_id_ = 1;
  bool first_ = true, spanned_ = false;
};

}  // namespace

KinetoProgress::KinetoProgress(const Trace& trace, const ExportOptions& options)
    : options_(options) {
  for (const Process& process : trace.processes) total_ += process.events.size();
}

void write_kineto_json(const Trace& trace, std::span<const Process* const> processes,
                       const std::string& title, OutputFile& file, KinetoProgress& progress,
                       KinetoSpelling spelling) {
  KinetoDocument(trace, processes, file, progress, spelling).run(title);
}

}  // namespace gpuprof
