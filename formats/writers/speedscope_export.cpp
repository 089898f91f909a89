// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/speedscope_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/trace/heap.h"
#include "formats/trace/names.h"
#include "formats/views/left_out_text.h"
#include "formats/views/slices.h"
#include "formats/views/work_order.h"

namespace gpuprof {
namespace {

constexpr size_t kDeepest = 256;

// "step" for "step 12": what differs by a number is one thing in a flame graph.
std::string_view without_number(std::string_view name) {
  std::string_view rest = name;
  while (!rest.empty() && rest.back() >= '0' && rest.back() <= '9') rest.remove_suffix(1);
  if (rest.size() == name.size() || rest.empty()) return name;
  if (std::string_view(" #_:").find(rest.back()) == std::string_view::npos) return name;
  rest.remove_suffix(1);
  return rest.empty() ? name : rest;
}

using Stack = std::vector<uint32_t>;  // frames, outermost first

struct Times {
  int64_t busy = 0, idle = 0;
};
struct HostMemory {
  int64_t allocated = 0, held = 0;
};
constexpr int64_t kMostBytes = int64_t{1} << 60, kMostSum = int64_t{1} << 61;  // damaged files
constexpr const char* kTime = "nanoseconds";
constexpr const char* kMemory = "bytes";
constexpr const char* kNoCall = "no recorded call";

using IdleTimes = std::vector<std::pair<uint32_t, int64_t>>;  // by event, in order of it

class SpeedscopeExport {
 public:
  SpeedscopeExport(const Trace& trace, OutputFile& file, const ExportOptions& options)
      : trace_(trace), works_(work_shapes(trace)), json_(file), progress_(trace, options) {}

  void run() {
    struct GpuTimes {
      std::string title;
      std::string note;
      std::map<Stack, Times> stacks;
    };
    std::vector<GpuTimes> found;
    std::vector<std::pair<std::string, std::map<Stack, Times>>> sampled;
    std::vector<std::pair<std::string, std::map<Stack, HostMemory>>> heaps;
    for (const Process& process : trace_.processes) {
      std::string title = process_title(process);
      if (process.header.window()) title += fmt::format(" window {}", process.header.window());
      for (auto& [thread, stacks] : of_samples(process)) {
        sampled.emplace_back(fmt::format("{}: Python, thread {}{}", title, thread,
                                         left_out_note(process, ShedKind::samples)),
                             std::move(stacks));
      }
      if (!process.heap.empty()) heaps.emplace_back(title, of_heap(process));
      found.push_back({std::move(title),
                       std::string(gpu_times_note(process)) + left_out_note(process),
                       of_process(process)});
    }
    json_.raw("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n");
    json_.raw("\"exporter\":\"gpuprof\",\n\"shared\":{\"frames\":[");
    for (size_t i = 0; i < names_.size(); ++i) {
      json_.raw(i ? ",\n{\"name\":" : "\n{\"name\":").string(*names_[i]).raw("}");
      json_.flush_if_large();
    }
    json_.raw("]},\n\"profiles\":[");
    for (const auto& [title, note, stacks] : found) {
      profile(fmt::format("{}: GPU time by what launched it{}", title, note), kTime, stacks,
              &Times::busy);
      profile(fmt::format("{}: GPU idle before{}", title, note), kTime, stacks, &Times::idle);
    }
    for (const auto& [title, stacks] : sampled) profile(title, kTime, stacks, &Times::busy);
    for (const auto& [title, stacks] : heaps) {
      profile(title + ": host memory allocated", kMemory, stacks, &HostMemory::allocated);
      profile(title + ": host memory held at the end", kMemory, stacks, &HostMemory::held);
    }
    json_.raw("]}\n");
  }

 private:
  uint32_t frame(std::string_view name) {
    const auto [at, fresh] = frames_.try_emplace(std::string(name), names_.size());
    if (fresh) names_.push_back(&at->first);
    return at->second;
  }

  // Time without work on any stream of its device, before each piece of work that ended such a
  // time.
  IdleTimes idle_before(const Process& process) const {
    std::map<uint32_t, std::vector<const Lane*>> devices;
    for (const Lane& lane : process.lanes) {
      if (lane.type == LaneType::stream) devices[lane.device].push_back(&lane);
    }
    IdleTimes idle;
    for (const auto& [device, lanes] : devices) {
      int64_t done = INT64_MAX;
      each_work_in_order(process.events, lanes, works_,
                         [&](int64_t begin, int64_t end, uint32_t event) {
                           if (begin > done) idle.emplace_back(event, begin - done);
                           done = done == INT64_MAX ? end : std::max(done, end);
                         });
    }
    std::sort(idle.begin(), idle.end());
    return idle;
  }

  static int64_t of(const IdleTimes& idle, EventIndex event) {
    const auto at =
        std::lower_bound(idle.begin(), idle.end(), std::pair(number(event), int64_t{0}));
    return at == idle.end() || at->first != number(event) ? 0 : at->second;
  }

  std::map<Stack, Times> of_process(const Process& process) {
    const IdleTimes idle = idle_before(process);
    std::map<Stack, Times> stacks;
    for (const Lane& lane : process.lanes) {
      if (lane.type == LaneType::stream) add_without_call(process, lane, idle, stacks);
      if (lane.type != LaneType::thread) continue;
      std::vector<EventIndex> open;
      for (const Event& event : process.lane_events(lane)) {
        progress_.add_one();
        if (is_instant(trace_.shape(event).kind)) continue;
        while (!open.empty() && process.event(open.back()).end <= event.begin) open.pop_back();
        for (EventIndex at = event.partner; at != EventIndex::none;
             at = process.event(at).next_sibling) {
          const Event& work = process.event(at);
          const Shape& shape = trace_.shape(work);
          if (!is_stream_work(shape.kind) || !drawable(shape)) continue;
          Times& times = stacks[stack_of(process, open, event, work)];
          times.busy += work.end - work.begin;
          times.idle += of(idle, at);
        }
        if (open.size() < kDeepest) open.push_back(process.index_of(event));
      }
    }
    return stacks;
  }

  // Work that no thread's call is known for: the preset `light` records no calls.
  void add_without_call(const Process& process, const Lane& lane, const IdleTimes& idle,
                        std::map<Stack, Times>& stacks) {
    for (const Event& work : process.lane_events(lane)) {
      if (!works_[number(work.shape)]) continue;
      const bool called = work.partner != EventIndex::none &&
                          process.lane(process.event(work.partner)).type == LaneType::thread;
      if (called) continue;
      progress_.add_one();
      Times& times = stacks[{frame(kNoCall), frame(trace_.text(trace_.shape(work).label))}];
      times.busy += work.end - work.begin;
      times.idle += of(idle, process.index_of(work));
    }
  }

  // The time of each Python stack, by thread: a sample stands for the time to the next one, two
  // periods at most.
  std::map<uint32_t, std::map<Stack, Times>> of_samples(const Process& process) {
    const int64_t period = process.sample_period;
    std::map<uint32_t, std::map<Stack, Times>> threads;
    for (size_t i = 0; i < process.samples.size(); ++i) {
      const HostSample& sample = process.samples[i];
      const bool last =
          i + 1 == process.samples.size() || process.samples[i + 1].thread != sample.thread;
      const int64_t gap = last ? period : process.samples[i + 1].time - sample.time;
      Stack stack;
      add_frames(process, sample.stack, stack);
      threads[sample.thread][stack].busy += std::min(gap, 2 * period);
    }
    return threads;
  }

  // What samples of allocations stand for.
  std::map<Stack, HostMemory> of_heap(const Process& process) {
    std::map<Stack, HostMemory> stacks;
    const auto add = [](int64_t& sum, double bytes) {
      sum = std::min(sum + std::max(int64_t{0}, whole_number(bytes)), kMostBytes);
    };
    for (const HeapSite& site : heap_sites(process)) {
      Stack stack;
      add_frames(process, site.stack, stack);
      HostMemory& memory = stacks[stack];
      add(memory.allocated, site.bytes);
      add(memory.held, site.held_bytes);
    }
    return stacks;
  }

  // Those of a recorded stack, outermost first.
  void add_frames(const Process& process, StackIndex recorded, Stack& stack) {
    const std::vector<std::string> lines = process.stacks.lines(recorded);
    for (auto line = lines.rbegin(); line != lines.rend(); ++line) stack.push_back(frame(*line));
  }

  Stack stack_of(const Process& process, const std::vector<EventIndex>& open, const Event& call,
                 const Event& work) {
    Stack stack;
    for (const EventIndex outer : open) {
      const Event& event = process.event(outer);
      if (event.end < call.end)
        continue;  // a range of start and end that does not enclose the call
      const std::string_view name = trace_.text(trace_.shape(event).label);
      if (!name.starts_with("ProfilerStep#")) stack.push_back(frame(without_number(name)));
    }
    const StackIndex native = process.extra(call).stack;
    if (native != StackIndex::none) add_frames(process, native, stack);
    stack.push_back(frame(plain_runtime_name(trace_.text(trace_.shape(call).label))));
    stack.push_back(frame(trace_.text(trace_.shape(work).label)));
    return stack;
  }

  template <typename Sums>
  void profile(const std::string& name, const char* unit, const std::map<Stack, Sums>& stacks,
               int64_t Sums::*weight) {
    int64_t sum = 0;
    for (const auto& [stack, sums] : stacks) sum = std::min(sum + sums.*weight, kMostSum);
    json_.raw(first_ ? "\n" : ",\n").raw("{\"type\":\"sampled\",\"unit\":\"");
    json_.raw(unit).raw("\",\"name\":");
    first_ = false;
    json_.string(name).raw(",\"startValue\":0,\"endValue\":").number(sum).raw(",\n\"samples\":[");
    bool first = true;
    for (const auto& [stack, sums] : stacks) {
      if (sums.*weight == 0) continue;
      json_.raw(first ? "[" : ",\n[");
      for (size_t i = 0; i < stack.size(); ++i) json_.raw(i ? "," : "").number(stack[i]);
      json_.raw("]").flush_if_large();
      first = false;
    }
    json_.raw("],\n\"weights\":[");
    first = true;
    for (const auto& [stack, sums] : stacks) {
      if (sums.*weight == 0) continue;
      json_.raw(first ? "" : ",").number(sums.*weight).flush_if_large();
      first = false;
    }
    json_.raw("]}");
  }

  const Trace& trace_;
  const std::vector<bool> works_;  // by shape
  JsonText json_;
  ExportProgress progress_;
  std::unordered_map<std::string, uint32_t> frames_;
  std::vector<const std::string*> names_;
  bool first_ = true;
};

}  // namespace

bool write_speedscope(const Trace& trace, const std::string& path, const ExportOptions& options,
                      std::string& error) {
  OutputFile file(path, options.compression, options.links);
  if (file.ok()) SpeedscopeExport(trace, file, options).run();
  if (file.commit()) return true;
  error = file.error();
  return false;
}

}  // namespace gpuprof
