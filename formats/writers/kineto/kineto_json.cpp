// SPDX-License-Identifier: Apache-2.0
// Rows: threads under the process's pid; streams under a pid for each GPU. Slices of a row nest or
// follow each other: what does not fit goes to a further row of the same thread or stream.
#include "formats/writers/kineto/kineto_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "formats/io/json_text.h"
#include "formats/io/parallel_output.h"
#include "formats/trace/stack_frames.h"
#include "formats/views/context_numbers.h"
#include "formats/views/gpu_annotations.h"
#include "formats/views/kineto_ids.h"
#include "formats/views/left_out_text.h"
#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"
#include "formats/writers/kineto/external_id_map.h"
#include "formats/writers/kineto/kineto_args.h"
#include "formats/writers/kineto/kineto_events.h"
#include "formats/writers/kineto/kineto_head.h"
#include "formats/writers/kineto/kineto_walks.h"

namespace gpuprof {
namespace {

// Half of Kineto's quarter of a year: readers hold microseconds in doubles, and from 2^42 on (the
// second half of the quarter) these no longer tell nanoseconds apart, so that calls overlap.
constexpr int64_t kBaseUnit = int64_t{7'889'238} * 1'000'000'000 / 2;
constexpr uint64_t kRowStride = 10'000'000;    // further rows of a thread or stream
constexpr uint64_t kOtherRow = 3'000'000'000;  // rows that are no thread's
constexpr uint64_t kRowsOfOther = 1'000;
constexpr uint64_t kSyncRow = 1'000'000;         // as Kineto numbers the row beside a stream
constexpr uint32_t kDefaultStreamRow = 999'999;  // viewers take thread 0 for the process itself

constexpr uint32_t kStretch = 1 << 12;  // events that a thread writes at a time
constexpr size_t kMuchText = 1 << 20;

int64_t first_time(const Trace& trace) {
  int64_t first = trace.processes.empty() ? 0 : trace.processes.front().window_begin;
  for (const Process& process : trace.processes) first = std::min(first, process.window_begin);
  return first;
}

class KinetoDocument {
 public:
  KinetoDocument(const Trace& trace, std::span<const Process* const> processes, OutputFile& file,
                 ExportProgress& progress, KinetoSpelling spelling)
      : trace_(trace),
        processes_(processes),
        ids_(assign_kineto_ids(processes)),
        events_(trace, spelling),
        output_(file, [&progress](uint64_t events) { progress.add(events); }) {}

  void run(const std::string& path) {
    find_times();
    write_kineto_head(json_, processes_, ids_, base_);
    for (const Process* process : processes_) metadata(*process);
    for (const Process* process : processes_) one_process(*process);
    json_.raw("\n],\n");
    if (!stack_frames_.empty()) {
      json_.raw("\"stackFrames\": ");
      stack_frames_.write(json_);
      json_.raw(",\n");
    }
    json_.raw("\"traceName\": ").string(path).raw("\n}\n");
    output_.write(text_);
    output_.finish();
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

  JsonText& event(const char* phase) {
    if (text_.size() >= kMuchText) output_.write(text_);
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
      std::string label = "GPU " + std::to_string(device);
      const auto own = process.gpu_names.find(device);
      if (own != process.gpu_names.end()) label += " (" + own->second + ")";
      label += gpu_times_note(process);
      named("process_labels", pid, 0, "labels", label);
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
    output_.finish();  // what is being written still reads what is set here
    process_ = &process;
    contexts_ = ContextNumbers(process);
    ids_here_ = &ids_.at(key_of(process));
    flow_base_ = number_++ << 32;
    external_ids_.emplace(trace_, process, next_external_id_);
    args_.emplace(trace_, process, *external_ids_);
    events_.enter(process, *args_,
                  {base_, ids_here_->pid, flow_base_, external_ids_->of_first_step(),
                   stack_frames_.nodes_of(process.stacks, last_stack(process))});
    const auto annotations = gpu_annotations(trace_, process);
    span();
    main_thread_ = main_thread(process);
    if (std::none_of(process.lanes.begin(), process.lanes.end(), [&](const Lane& lane) {
          return lane.type == LaneType::thread && lane.thread_id == main_thread_;
        })) {
      Lane none{};
      none.thread_id = main_thread_;
      thread(none);
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
    left_out();
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

  // Steps are slices of the main thread, among its calls.
  void thread(const Lane& lane) {
    std::vector<Slice> steps;
    if (lane.thread_id == main_thread_ && !process_->steps_are_events) {
      for (const Step& step : process_->window_steps()) {
        steps.push_back({EventIndex::none, step.begin, step.end});
      }
      std::stable_sort(steps.begin(), steps.end(), earlier);
    }
    const uint32_t id = lane.thread_id;
    host_lane(lane, std::move(steps), id, kRowStride, [&](size_t i) {
      std::string name = "thread " + std::to_string(id) + " (" + lane.thread_name + ")";
      if (i) name += " overlapping " + std::to_string(i);
      return name;
    });
  }

  // A row of an outside trace that is no thread.
  void other(const Lane& lane) {
    const uint64_t tid = kOtherRow + lane.thread_id * uint64_t{kRowsOfOther};
    describe_row(ids_here_->pid, tid, lane.thread_name, tid);
    host_lane(lane, {}, tid, 1, [&](size_t) { return lane.thread_name; });
  }

  // Calls `each(events, whether they are the last)`, once where the lane has none.
  template <typename Each>
  void for_stretches(const Lane& lane, const Each& each) const {
    const uint32_t end = lane.first_event + lane.event_count;
    uint32_t first = lane.first_event;
    do {
      const uint32_t next = std::min(end, first + kStretch);
      each(process_->events.range(first, next - first), next == end);
      first = next;
    } while (first < end);
  }

  // The lane is walked through twice: here, to know which rows there are and where each stretch
  // begins; and by whoever writes the stretch.
  template <typename Name>
  void host_lane(const Lane& lane, std::vector<Slice> steps, uint64_t tid, uint64_t stride,
                 const Name& name) {
    HostWalk walk;
    std::vector<KinetoRow> rows;
    const auto shared_steps = std::make_shared<const std::vector<Slice>>(std::move(steps));
    for_stretches(lane, [&](EventTable::Range events, bool last) {
      const HostWalk before = walk;
      bool any = false;
      walk.run(
          trace_, events, *shared_steps, last,
          [&](size_t, const Slice&, const Event*) { any = true; }, [](const Event&) {});
      while (rows.size() < walk.splitter.tracks()) {
        rows.emplace_back(ids_here_->pid, tid + rows.size() * stride);
      }
      for (size_t i = 0; any && i < rows.size(); ++i) {
        describe_row(ids_here_->pid, rows[i].tid, name(i), rows[i].tid);
      }
      output_.write(text_);
      output_.add(
          [this, walk = before, events, shared_steps, rows, last](std::string& out) {
            out.clear();
            JsonText json(out);
            HostWalk here = walk;
            here.run(
                trace_, events, *shared_steps, last,
                [&](size_t track, const Slice& slice, const Event* event) {
                  event ? events_.host_slice(json, *event, slice, rows[track])
                        : events_.step(json, slice, rows[track]);
                },
                [&](const Event& event) { events_.mark(json, event, rows[0]); });
            return out.size();
          },
          events.size());
    });
  }

  // Work that overlaps other work of its stream goes to a row of its own, and so that tools which
  // expect a stream's work one after the other agree, to a stream of its own.
  void stream(const Lane& lane, std::vector<Slice> annotations) {
    const auto all = process_->lane_events(lane);
    for (const Event& e : all) {
      if (trace_.shape(e).kind != Kind::gpu_annotation) continue;
      annotations.push_back({e.index, e.begin, e.end});
    }
    std::stable_sort(annotations.begin(), annotations.end(), earlier);
    std::vector<Slice> crossing;
    const auto around =
        std::make_shared<const std::vector<Slice>>(fitting_annotations(all, annotations, crossing));
    const StreamRows name{contexts_, lane, ids_here_->gpus.at(lane.device)};
    StreamWalk walk;
    std::vector<KinetoRow> rows;
    for_stretches(lane, [&](EventTable::Range events, bool last) {
      const StreamWalk before = walk;
      bool any = false;
      walk.run(
          events_, events, *around, last, [&](size_t, const Slice&, const Event&) { any = true; },
          [&](const Slice&) { any = true; });
      while (rows.size() < walk.splitter.tracks()) rows.push_back(name.row(rows.size()));
      for (size_t i = 0; any && i < rows.size(); ++i) describe_stream(name, rows[i], i);
      output_.write(text_);
      output_.add(
          [this, walk = before, events, around, rows, name, last](std::string& out) {
            out.clear();
            JsonText json(out);
            StreamWalk here = walk;
            here.run(
                events_, events, *around, last,
                [&](size_t track, const Slice& slice, const Event& event) {
                  events_.gpu_slice(json, event, slice, rows[track], name.stream(track), name.lane);
                },
                [&](const Slice& slice) { annotation(json, slice, name, rows[0], 0); });
            return out.size();
          },
          events.size());
    });
    const auto more = split_tracks(crossing, Overlap::nest);
    for (size_t i = 0; i < more.size(); ++i) {
      if (more[i].empty()) continue;
      const size_t number = rows.size() + i;
      const KinetoRow row = name.row(number);
      describe_stream(name, row, number);
      for (const Slice& slice : more[i]) annotation(json_, slice, name, row, number);
    }
  }

  // How the rows of a stream are numbered.
  struct StreamRows {
    StreamRows(const ContextNumbers& contexts, const Lane& of, uint32_t gpu)
        : lane(of), pid(gpu), first(contexts.of(of) * kMaxTracks) {}
    KinetoRow row(size_t number) const {
      const uint64_t base = lane.stream ? lane.stream : kDefaultStreamRow;
      return {pid, base + (first + number) * kRowStride};
    }
    uint64_t stream(size_t number) const { return first + number ? row(number).tid : lane.stream; }
    const Lane& lane;
    uint32_t pid;
    size_t first;  // streams of further contexts have rows of their own
  };

  void describe_stream(const StreamRows& rows, const KinetoRow& row, size_t number) {
    std::string name = "stream " + std::to_string(rows.lane.stream) + " ";
    if (!rows.lane.thread_name.empty()) name += "(" + rows.lane.thread_name + ") ";
    if (rows.first) name += "context " + std::to_string(rows.lane.context) + " ";
    if (number) name += "overlapping " + std::to_string(number);
    describe_row(row.pid, row.tid, name, row.tid);
  }

  // A host range or an annotation of an outside trace.
  void annotation(JsonText& json, const Slice& slice, const StreamRows& rows, const KinetoRow& row,
                  size_t number) const {
    const Event event = process_->event(slice.event);
    if (is_gpu_kind(trace_.shape(event).kind)) {
      events_.gpu_slice(json, event, slice, row, rows.stream(number), rows.lane);
    } else {
      events_.annotation(json, event, slice, row);
    }
  }

  std::vector<Slice> fitting_annotations(EventTable::Range events,
                                         const std::vector<Slice>& annotations,
                                         std::vector<Slice>& crossing) const {
    if (annotations.empty()) return {};
    const auto cut = crossing_work(annotations, [&](const auto& visit) {
      StreamWalk walk;
      walk.run(
          events_, events, {}, true,
          [&](size_t track, const Slice& slice, const Event&) {
            if (track == 0) visit(slice);
          },
          [](const Slice&) {});
    });
    return annotations_around(annotations, cut, crossing);
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
          const Event e = process_->event(s.event);
          if (text_.size() >= kMuchText) output_.write(text_);
          events_.slice(json_, e.shape, s.begin, s.end, KinetoRow(pid, tid));
          args_->sync(json_, e, pid);
          json_.raw("}");
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
        if (text_.size() >= kMuchText) output_.write(text_);
        const ShapeIndex shape = process_->event(s.event).shape;
        events_.slice(json_, shape, s.begin, s.end, KinetoRow(pid, 1 + i));
        json_.raw("{}}");
      }
    }
  }

  // Moments from which on the trace has not all that happened, across the process's rows.
  void left_out() {
    for (const RecordingBudget::LeftOut& each : process_->budget.left_out) {
      event("i").raw(",\"cat\":\"gpuprof\",\"s\":\"p\",\"name\":");
      json_.string("not recorded from here on: " + left_out_words(each.kind));
      row(ids_here_->pid, main_thread_);
      json_.raw(",\"ts\":").microseconds(each.since - base_);
      json_.raw(",\"args\":{").raw(kDerived).raw("}}");
    }
  }

  // Arrows from operators to what they have in the backward pass.
  void forward_backward() {
    for (const ForwardBackward& pair : process_->forward_backward) {
      for (const bool start : {true, false}) {
        const Event& e = process_->event(start ? pair.forward : pair.backward);
        const Lane& lane = process_->lane(e);
        if (lane.type != LaneType::thread) continue;
        event(start ? "s" : "f").raw(",\"id\":").number(flow_base_ + pair.id);
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
      const uint32_t thread = lane.type == LaneType::thread ? lane.thread_id : main_thread_;
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
    }
  }

  // The GPU that an allocation is on: CUPTI says; a call alone does not where there are several.
  uint32_t gpu_of(const Event& e) const {
    const Lane& lane = process_->lane(e);
    if (lane.type == LaneType::device) return ids_here_->gpus.at(lane.device);
    return ids_here_->gpus.empty() ? 0 : ids_here_->gpus.begin()->second;
  }

  const Trace& trace_;
  const std::span<const Process* const> processes_;
  std::string text_;  // what is not on its way to the file
  JsonText json_{text_};
  const std::map<ProcessKey, KinetoIds> ids_;
  StackFrames stack_frames_;
  KinetoEvents events_;
  std::set<uint32_t> described_;
  std::set<std::pair<uint32_t, uint64_t>> rows_;
  const Process* process_ = nullptr;
  ContextNumbers contexts_;  // of its streams
  uint32_t main_thread_ = 0;
  const KinetoIds* ids_here_ = nullptr;
  std::optional<ExternalIdMap> external_ids_;
  std::optional<ChromeArgs> args_;  // holds them
  int64_t base_ = 0, begin_ = 0, end_ = 0;
  uint64_t number_ = 0, flow_base_ = 0, next_external_id_ = 1;
  bool first_ = true, spanned_ = false;
  ParallelOutput output_;  // last: its threads read the others
};

}  // namespace

void write_kineto_json(const Trace& trace, std::span<const Process* const> processes,
                       const std::string& title, OutputFile& file, ExportProgress& progress,
                       KinetoSpelling spelling) {
  KinetoDocument(trace, processes, file, progress, spelling).run(title);
}

}  // namespace gpuprof
