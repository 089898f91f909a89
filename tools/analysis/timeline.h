// SPDX-License-Identifier: Apache-2.0
// One process as the analysis sees it: what its threads called, what its GPUs did, and which call
// caused which work. Times as in Trace: ns since the Unix epoch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/trace.h"
#include "tools/analysis/intervals.h"

namespace gpuprof::analysis {

inline constexpr uint32_t kNone = 0xffffffff;

enum class WorkClass : uint8_t { compute, communication, transfer };
inline constexpr size_t kWorkClasses = 3;

// A piece of GPU work with times: kernel, graph, copy or set.
struct Work {
  int64_t begin, end;
  EventIndex event;
  uint32_t call;    // in Timeline::calls; kNone: the call was not recorded
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
  EventIndex event;
  uint32_t thread;      // in Timeline::threads
  uint32_t first_work;  // the first of works that it caused, by Work index; kNone: none
  CallClass kind;
  bool blocking;  // it waits for the work that it issues itself
};

struct HostThread {
  uint32_t id;
  uint32_t first_call, call_count;  // in Timeline::calls, in order of begin
  Intervals data_loading;           // when it waited for its data loader
};

struct StreamName {
  uint32_t device, context, stream;
};

struct Timeline {
  const Trace* trace;
  const Process* process;
  std::vector<Work> works;          // in order of begin
  std::vector<uint32_t> next_work;  // the next work of the same call, by Work index; kNone: none
  std::vector<Call> calls;          // thread by thread
  std::vector<HostThread> threads;
  std::vector<StreamName> streams;
  uint32_t main_thread = kNone;  // the one that steps run on
  std::vector<Step> steps;       // those of the window; see trim_first_step() for the first
  double period_confidence = 0;  // of steps that were found from the order of work; 0: marked
  int64_t launch_latency = 0;    // ns from a launch's begin to its work's, at the least

  std::span<const Call> calls_of(const HostThread& thread) const {
    return {calls.data() + thread.first_call, thread.call_count};
  }
  const Shape& shape(EventIndex event) const { return trace->shape(process->event(event)); }
  const Step* step_at(int64_t time) const;  // null: in none
};

Timeline make_timeline(const Trace& trace, const Process& process);

// Whether a range of this name is time in a data loader: "enumerate(DataLoader)#...__next__" of
// PyTorch, or a user's "dataloader..." in any case.
bool names_data_loading(std::string_view name);

// Whether a kernel of this name is NCCL's (or RCCL's).
bool names_communication(std::string_view name);

}  // namespace gpuprof::analysis
