// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/timeline.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/slices.h"
#include "tools/analysis/period.h"

namespace gpuprof::analysis {
namespace {

bool begins_with(std::string_view text, std::string_view lower_case) {
  if (text.size() < lower_case.size()) return false;
  for (size_t i = 0; i < lower_case.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower_case[i]) return false;
  }
  return true;
}

CallClass class_of(const Shape& shape) {
  switch (shape.kind) {
    case Kind::alloc:
    case Kind::dealloc: return CallClass::allocate;
    case Kind::sync: return CallClass::synchronize;
    default: return CallClass::issue;
  }
}

class Builder {
 public:
  Builder(const Trace& trace, const Process& process)
      : trace_(trace), process_(process), call_of_(process.events.size(), kNone) {
    out_.trace = &trace;
    out_.process = &process;
    const std::span<const Step> steps = process.window_steps();
    out_.steps.assign(steps.begin(), steps.end());
  }

  Timeline build() {
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::thread) add_thread(lane);
    }
    const auto collectives = collectives_by_kernel(process_);
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::stream) add_stream(lane, collectives);
    }
    std::stable_sort(out_.works.begin(), out_.works.end(),
                     [](const Work& a, const Work& b) { return a.begin < b.begin; });
    link_works();
    find_blocking_copies();
    find_launch_latency();
    find_main_thread();
    if (out_.steps.empty()) find_steps();
    trim_first_step();
    return std::move(out_);
  }

 private:
  // Without marks of steps, those that the order of work tells. A step ends where the next one
  // begins, or, where something else stands between the two, with its last work.
  void find_steps() {
    constexpr size_t kMostWork = 500'000;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < out_.works.size(); ++i) {
      if (out_.works[i].call != kNone) order.push_back(i);
    }
    if (order.size() > kMostWork) return;
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return issued_at(a) < issued_at(b); });
    std::vector<uint32_t> kernels;
    for (const uint32_t i : order) kernels.push_back(number(out_.shape(out_.works[i].event).label));
    const Period period = find_period(kernels);
    out_.period_confidence = period.confidence;
    const auto length = static_cast<size_t>(period.length);
    for (size_t i = 0; i < period.begins.size(); ++i) {
      const size_t first = period.begins[i];
      const bool last = i + 1 == period.begins.size();
      const size_t next = last ? order.size() : period.begins[i + 1];
      const bool alone = last || next - first > length + length / 3;
      const Work& work = out_.works[order[std::min(first + length, order.size()) - 1]];
      out_.steps.push_back({i, issued_at(order[first]), alone ? work.end : issued_at(order[next])});
    }
  }

  int64_t issued_at(uint32_t work) const { return out_.calls[out_.works[work].call].begin; }

  // A captured call started no work, and costs the step nothing but its own time.
  void add_thread(const Lane& lane) {
    HostThread thread{lane.thread_id, static_cast<uint32_t>(out_.calls.size()), 0, {}};
    std::vector<Interval> loading;
    int64_t open_end = INT64_MIN;
    for (const Event& event : process_.lane_events(lane)) {
      const Shape& shape = trace_.shape(event);
      if (!is_call_kind(shape.kind)) {
        if (loads_data(event.shape)) loading.push_back({event.begin, event.end});
        continue;
      }
      const EventIndex index = process_.index_of(event);
      if (event.begin >= open_end) {
        out_.calls.push_back({event.begin, event.end, index,
                              static_cast<uint32_t>(out_.threads.size()), kNone, class_of(shape),
                              false});
        open_end = event.end;
      }
      call_of_[number(index)] = static_cast<uint32_t>(out_.calls.size()) - 1;
    }
    thread.call_count = static_cast<uint32_t>(out_.calls.size()) - thread.first_call;
    thread.data_loading = cover(std::move(loading));
    out_.threads.push_back(std::move(thread));
  }

  bool loads_data(ShapeIndex shape) {
    const auto [at, fresh] = loading_.try_emplace(number(shape), false);
    if (fresh) at->second = names_data_loading(trace_.text(trace_.shapes[shape].label));
    return at->second;
  }

  WorkClass class_of_work(const Event& event, const std::map<uint32_t, uint32_t>& collectives) {
    const Shape& shape = trace_.shape(event);
    const bool copies = shape.kind == Kind::gpu_copy || shape.kind == Kind::gpu_set;
    if (collectives.contains(number(process_.index_of(event)))) return WorkClass::communication;
    if (copies) return WorkClass::transfer;
    const auto [at, fresh] = communicates_.try_emplace(number(event.shape), false);
    if (fresh) at->second = names_communication(trace_.text(shape.label));
    return at->second ? WorkClass::communication : WorkClass::compute;
  }

  void add_stream(const Lane& lane, const std::map<uint32_t, uint32_t>& collectives) {
    const auto stream = static_cast<uint32_t>(out_.streams.size());
    out_.streams.push_back({lane.device, lane.context, lane.stream});
    for (const Event& event : process_.lane_events(lane)) {
      const Shape& shape = trace_.shape(event);
      if (!is_stream_work(shape.kind) || !drawable(shape)) continue;
      const uint32_t call =
          event.partner == EventIndex::none ? kNone : call_of_[number(event.partner)];
      out_.works.push_back({event.begin, event.end, process_.index_of(event), call, stream,
                            class_of_work(event, collectives)});
    }
  }

  void link_works() {
    out_.next_work.assign(out_.works.size(), kNone);
    for (uint32_t i = static_cast<uint32_t>(out_.works.size()); i-- > 0;) {
      if (out_.works[i].call == kNone) continue;
      uint32_t& first = out_.calls[out_.works[i].call].first_work;
      out_.next_work[i] = std::exchange(first, i);
    }
  }

  // A copy that returns when it is done: by name, or because its memory is not pinned. (A small
  // asynchronous copy may be done before its call returns, too; nobody waited for it.)
  void find_blocking_copies() {
    for (Call& call : out_.calls) {
      if (call.first_work == kNone || out_.shape(call.event).kind != Kind::copy) continue;
      const Work& work = out_.works[call.first_work];
      const bool waits =
          trace_.text(out_.shape(call.event).name).find("Async") == std::string_view::npos ||
          trace_.text(out_.shape(work.event).label).find("Pageable") != std::string_view::npos;
      call.blocking = waits && work.end <= call.end;
    }
  }

  // Of kernels that found their stream idle, the fifth percentile, so that one bad time stamp does
  // not decide. Where every kernel had to wait for others, the usual latency of a launch.
  void find_launch_latency() {
    constexpr int64_t kUsual = 5000;
    std::vector<int64_t> found;
    std::vector<int64_t> idle_since(out_.streams.size(), INT64_MIN);
    for (const Work& work : out_.works) {
      int64_t& since = idle_since[work.stream];
      if (work.call != kNone && work.kind != WorkClass::transfer) {
        const int64_t issued = out_.calls[work.call].begin;
        if (issued >= since && work.begin > issued) found.push_back(work.begin - issued);
      }
      since = std::max(since, work.end);
    }
    out_.launch_latency = kUsual;
    if (found.empty()) return;
    const auto at = found.begin() + static_cast<int64_t>(found.size() / 20);
    std::nth_element(found.begin(), at, found.end());
    out_.launch_latency = *at;
  }

  // Where the program's own thread makes no calls (a viewer's id was lost, say), the busiest.
  void find_main_thread() {
    const uint32_t wanted = gpuprof::main_thread(process_);
    uint32_t most = 0;
    for (uint32_t i = 0; i < out_.threads.size(); ++i) {
      const HostThread& thread = out_.threads[i];
      if (thread.id == wanted && thread.call_count + thread.data_loading.size() > 0) {
        out_.main_thread = i;
        return;
      }
      if (out_.main_thread == kNone || thread.call_count > most) {
        out_.main_thread = i;
        most = thread.call_count;
      }
    }
  }

  // The thread whose step opens the window waits there until CUPTI is ready: the profiler's time,
  // not the step's. So that step begins with the first thing that was recorded of its thread.
  void trim_first_step() {
    if (out_.steps.empty() || out_.main_thread == kNone) return;
    Step& step = out_.steps.front();
    if (step.begin > process_.window_begin) return;
    for (const Lane& lane : process_.lanes) {
      const bool main =
          lane.type == LaneType::thread && lane.thread_id == out_.threads[out_.main_thread].id;
      if (!main) continue;
      const auto events = process_.lane_events(lane);
      const auto first = std::find_if(events.begin(), events.end(), [&](const Event& event) {
        const bool step_itself =
            process_.steps_are_events && event.begin == step.begin && event.end == step.end;
        return !step_itself;
      });
      if (first != events.end() && first->begin < step.end) {
        step.begin = std::max(step.begin, first->begin);
      }
    }
  }

  const Trace& trace_;
  const Process& process_;
  Timeline out_{};
  std::vector<uint32_t> call_of_;                              // by event
  std::unordered_map<uint32_t, bool> loading_, communicates_;  // by shape
};

}  // namespace

bool names_data_loading(std::string_view name) {
  return begins_with(name, "enumerate(dataloader)#") || begins_with(name, "dataloader");
}

bool names_communication(std::string_view name) {
  return name.find("ncclDevKernel") != std::string_view::npos ||
         name.find("ncclKernel") != std::string_view::npos || begins_with(name, "nccl");
}

const Step* Timeline::step_at(int64_t time) const {
  const auto step = std::partition_point(steps.begin(), steps.end(),
                                         [&](const Step& each) { return each.end <= time; });
  return step == steps.end() || step->begin > time ? nullptr : &*step;
}

Timeline make_timeline(const Trace& trace, const Process& process) {
  return Builder(trace, process).build();
}

}  // namespace gpuprof::analysis
