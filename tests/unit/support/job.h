// SPDX-License-Identifier: Apache-2.0
// What a training job is like that JobModel (job_model.h) computes, and where its time went.
#pragma once

#include <array>
#include <cstdint>

namespace gpuprof::test {

// All times in ns.
struct Job {
  int steps = 12, ranks = 1;
  int unrecorded = 0;      // steps before the window
  bool late_work = false;  // their work that ends in the window is recorded, as CUPTI does
  int late_work_from = 0;  // that of which of these steps on: CUPTI records since the warm-up
  int kernels = 24;
  int64_t kernel = 200'000;
  int64_t issue = 5'000, pause = 2'000;  // a launch call, and between two
  int64_t stall = 0;                     // of one launch a step, before its work is handed over
  int stalled_kernel = 0;                // which
  int64_t data = 0;                      // in the loader, each step
  int late_batch = -1;                   // the only step, from 0, whose batch takes that long
  int64_t copy = 0;                      // a copy to the GPU, each step
  bool blocking_copy = false;
  int sync_every = 1;
  int syncing_rank = -1;        // it waits at each step's end
  int64_t after_sync = 20'000;  // what the host does between a wait's end and its next call
  int allocations = 0;          // pairs of cudaMalloc and cudaFree, after the kernels
  int64_t allocation = 5'000;   // either call; cudaFree waits for the device, too
  int64_t collective = 0;       // each, after every sixth kernel
  bool overlap = false;         // collectives on a stream of their own
  int64_t logging = 0;          // own work of the host, each step
  int64_t profiling = 0;        // the profiler's, right before it
  int64_t stacks = 0;           // of each kernel's launch: its call stack, which is taken before it
  int slow_rank = -1;
  double slow = 1;         // its kernels
  int pausing_rank = -1;   // its host does nothing
  int pausing_step = 0;    // in this one, at its begin,
  int64_t pause_once = 0;  // for so long
  uint64_t seed = 1;       // of 2 % noise on kernels
  double noise = 0;        // of a whole step: its kernels and its data take up to this share more
  double jitter = 0;       // of a rank's kernels in a step: each rank has its own
  double softmax = 1;      // factor of every fourth kernel, softmax
  double norm = 1;         // factor of the step's second kernel, norm
  const char* norm_name = "_Z4normPf";
  // Every eighth kernel from the fifth on and the one after it: a bias and an activation, or both
  // in one kernel that takes `fused_time` of the two.
  enum class Layer { plain, separate, fused } layer = Layer::plain;
  double fused_time = 1;
  bool lone_bias = false;  // the step's third kernel is a bias, too
  bool marked = true;      // steps have boundaries in the dumps
  // The window is a bracket of cudaProfilerStart and Stop, with marks of steps inside it.
  enum class Bracket {
    no,
    ranges,
    optimizers,
    two_optimizers,
    optimizer_groups,  // three steps one after another, after a backward pass on a thread of its
                       // own
    in_backward,       // on that thread, between the nodes of the backward pass
    engine,
    nothing
  } bracket = Bracket::no;
  bool one_off = false;      // each compute kernel has a name of its own: no order tells steps
  int64_t tail = 1'000'000;  // from all that the job did to the window's end
  int late_rank = -1;        // its window begins later, by
  int late_by = 1;           // so many steps
  bool calls = true;         // recorded, not only the GPU's work
  // The first step of which the compute stream's work is not recorded: it was when the process was
  // killed that CUPTI had its times.
  int killed_at = -1;
  // Other programs on its processor: having run for `slice`, a host thread waits `queue`. Its share
  // is what it is entitled to while it sleeps, too.
  int64_t slice = 3'000'000, queue = 0;
};

// As analysis::Part.
enum class JobPart {
  compute,
  communication,
  transfer,
  data,
  launch,
  allocation,
  sync,
  other,
  profiler,
  unknown,  // work ran that is not in the dump
};

struct JobTruth {
  std::array<double, 10> pct{};  // of the steps' wall time, over all ranks
  double step_ns = 0;            // between the ends of the first and the last step's work
};

}  // namespace gpuprof::test
