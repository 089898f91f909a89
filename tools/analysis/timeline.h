// SPDX-License-Identifier: Apache-2.0
// One process as the analysis sees it: what its threads called, what its GPUs did, and which call
// caused which work. Events stay where they are, in the trace. Calls and work are read one at a
// time (walks.h): beside ten million events hardly anything is in memory. Times as in Trace: ns
// since the Unix epoch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/analysis/bits.h"
#include "tools/analysis/intervals.h"

namespace gpuprof::analysis {

inline constexpr uint32_t kNone = 0xffffffff;
inline constexpr int64_t kNotIssued = INT64_MIN;

enum class WorkClass : uint8_t { compute, communication, transfer };
inline constexpr size_t kWorkClasses = 3;

// A piece of GPU work with times: kernel, graph, copy or set.
struct Work {
  int64_t begin, end;
  uint32_t event;   // in Process::events
  uint32_t stream;  // in Timeline::streams
  WorkClass kind;
};

enum class CallClass : uint8_t {
  issue,        // hands work to the GPU, or is cheap
  allocate,     // cudaMalloc, cudaFree and their like
  synchronize,  // exists to wait
};

// An outermost traced call; what it calls in turn belongs to it.
struct Call {
  int64_t begin, end;
  uint32_t event;   // in Process::events
  uint32_t thread;  // in Timeline::threads
  CallClass kind;
  bool blocking;  // it waits for the work that it issues itself
};

// What is the same for all events of a shape.
struct ShapeTraits {
  bool call = false, work = false;
  CallClass call_class = CallClass::issue;
  WorkClass work_class = WorkClass::compute;
  bool copy_call = false;        // a call that copies,
  bool waits = false;            // and by its name returns when it is done
  bool pageable = false;         // work: a copy of memory that is not pinned
  bool loads_data = false;       // a range in a data loader
  bool steps_optimizer = false;  // PyTorch's range of an optimizer's step
  bool dispatches = false;       // an operator, or node of a backward pass, of the framework's own
  bool tensor_cores = false;     // work: as far as its name tells
};
using TraitsOfShapes = std::vector<ShapeTraits>;

struct HostThread {
  uint32_t id;
  uint32_t first_event, end_event;  // in Process::events, in order of begin
  Bits calls;                       // which of them are outermost calls
  uint32_t call_count = 0;
  Intervals data_loading;  // when it waited for its data loader
  Intervals dispatch;      // when it was in an operator or node of the framework that issues work
  Measure profiling{{}};   // when it worked for the profiler (formats/core/own_time.h)
  uint32_t optimizer_steps = 0;
};

struct StreamName {
  uint32_t device, context, stream;
};

struct Stream {
  StreamName name;
  uint32_t first_event, end_event;  // in Process::events, in order of begin
};

struct Timeline {
  const Trace* trace;
  const Process* process;
  std::shared_ptr<const TraitsOfShapes> traits;
  std::vector<HostThread> threads;
  std::vector<Stream> streams;
  Bits of_collectives;            // events that do a collective; empty: none is known
  size_t works = 0, orphans = 0;  // orphans: those whose call was not recorded
  bool gpu_timed = false;         // there is work, and not only copies where kernels are missing
  uint32_t main_thread = kNone;   // the one that steps run on
  Intervals dispatch;             // of all threads
  Intervals attaching;            // CUPTI was attached, for which calls that issue work wait
  std::vector<Step> steps;        // those of the window
  std::string nested_source;      // what marks them inside it (nested_steps.h); empty: they are
                                  // the window's own
  uint32_t joined_waits = 0;      // that auto took for steps, in each of these; 0: none are
  size_t untimed_steps = 0;       // more, at the end of a killed process: without all times
  double period_confidence = 0;   // of steps that were found from the order of work; 0: marked
  double found_share = 0;         // of the GPU work, by count or time: what such steps hold
  double found_time_share = 1;    // of the window's time, likewise
  bool one_iteration = false;     // a bracket of cudaProfilerStart that is known to hold one step
  bool undivided = false;         // one that is not, beside others in which steps were found: none
  bool ranks_differ = false;      // such steps were found, but not the same on all ranks: none
  bool whole_window = false;      // no process has steps: its window as a whole stands for one
  int64_t launch_latency = 0;     // ns from a launch's begin to its work's, at the least

  // What marks the steps, as GPUPROF_STEP names it; empty: not known.
  std::string_view step_source() const {
    return nested_source.empty() ? process->step_source : nested_source;
  }
  // Its steps are stretches of wall time: nothing better was found in the window.
  bool has_clock_steps() const;
  const EventTable& events() const { return process->events; }
  const Shape& shape(uint32_t event) const { return trace->shapes[events().shape_of(event)]; }
  const ShapeTraits& traits_of(uint32_t event) const {
    return (*traits)[number(events().shape_of(event))];
  }

  // Of an event that is work, on that stream.
  Work work(uint32_t event, uint32_t stream) const {
    const bool collective = of_collectives.test(event);
    return {events().begin_of(event), events().end_of(event), event, stream,
            collective ? WorkClass::communication : traits_of(event).work_class};
  }
  // Of an event that is an outermost call of that thread.
  Call call(uint32_t event, uint32_t thread) const {
    const ShapeTraits& traits = traits_of(event);
    Call out{
        events().begin_of(event), events().end_of(event), event, thread, traits.call_class, false};
    out.blocking = traits.copy_call && waits_for_own_work(out);
    return out;
  }
  // The outermost call that caused it; nothing: it was not recorded.
  std::optional<Call> call_of(const Work& work) const;
  // The begin of that call, for less; kNotIssued: it was not recorded.
  int64_t call_begin_of(const Work& work) const {
    const uint32_t call = call_event_of(work);
    return call == kNone ? kNotIssued : events().begin_of(call);
  }
  int64_t issued_at(const Work& work) const {  // its call's begin, else its own
    const int64_t begin = call_begin_of(work);
    return begin == kNotIssued ? work.begin : begin;
  }
  // The events of a stream from the first to the last work that calls in the steps issued, whenever
  // it ran. A stream's work runs in the order of its issue. What has no recorded call goes with
  // what it stands between; before the first such work it was issued before the steps. A stream
  // without any such work: what began in the steps. Of a whole window: all.
  struct EventRange {
    uint32_t first, end;
  };
  EventRange work_of_steps(uint32_t stream) const;
  // What a call caused, in order of begin (of equal ones, of event). Replaces what is in `out`.
  void works_of(const Call& call, std::vector<Work>& out) const;

  const Step* step_at(int64_t time) const;  // null: in none

 private:
  friend class TimelineBuilder;
  // The thread or stream that an event is of; kNone: it is of none.
  uint32_t thread_of(uint32_t event) const { return lane_of(threads, event); }
  uint32_t stream_of(uint32_t event) const { return lane_of(streams, event); }
  // Lanes lie behind one another.
  template <typename Lane>
  static uint32_t lane_of(const std::vector<Lane>& lanes, uint32_t event) {
    const auto after = std::upper_bound(
        lanes.begin(), lanes.end(), event,
        [](uint32_t wanted, const Lane& lane) { return wanted < lane.first_event; });
    if (after == lanes.begin() || event >= std::prev(after)->end_event) return kNone;
    return static_cast<uint32_t>(after - lanes.begin() - 1);
  }
  uint32_t call_event_of(const Work& work) const;
  // Of any event of a stream: when its call began.
  int64_t issue_of(uint32_t event, uint32_t stream) const;
  bool waits_for_own_work(const Call& call) const;
};

// Those of all processes but workers of data loaders, in their order.
std::vector<Timeline> make_timelines(const Trace& trace);

// Where no process has made a step, in its window or before: each one's window as a whole becomes
// its only one. Of processes without work on a GPU only if none has any.
void look_at_whole_windows(std::vector<Timeline>& timelines);

// Whether its window lies between cudaProfilerStart and cudaProfilerStop: its only step.
bool is_bracketed(const Process& process);

// Whether its steps are stretches of wall time: `time:MS`, to which `auto` falls back.
bool goes_by_clock(const Process& process);

// Whether an operator of this name, or a node of the backward pass, is PyTorch's own and not
// written in the program's Python: "aten::mm", "AddmmBackward0". Of a torch.autograd.Function it is
// the name of its class and "Backward", without a number.
bool names_framework_operator(std::string_view name);

// PyTorch's range around an optimizer's step(): "Optimizer.step#AdamW.step".
bool names_optimizer_step(std::string_view name);

// Whether there would be no overhead of this type without a profiler (Shape::cupti_type).
bool is_profiling(uint32_t overhead_type);

}  // namespace gpuprof::analysis
