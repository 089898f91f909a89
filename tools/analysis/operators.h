// SPDX-License-Identifier: Apache-2.0
// Who caused the steps' work and waits: operators, layers and named ranges of the program, lines of
// its code, owners of its memory (memory_owners.h). From traces that have any of these.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/analysis/flops.h"
#include "tools/analysis/memory_owners.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Sums over all calls of one name. Total: with what was called in turn; self: without other
// operators and ranges. The GPU time is that of the work which was launched, whenever it ran. A
// call in which one of the same name is all there is counts as one with it, as in torch.profiler's
// key_averages().
struct OperatorRow {
  std::string name;
  std::string by;    // OperatorTables::grouped: the shape, stack, layer or line; empty: not known
  std::string kind;  // "operator", "range" (NVTX, record_function), "module"
  uint64_t count = 0;
  double cpu_us = 0, cpu_self_us = 0;
  double cpu_call_us = 0;  // of cpu_self_us, in calls of CUDA's and NCCL's
  double cpu_wait_us = 0;  // of cpu_call_us, in those that wait for the GPU
  double gpu_us = 0, gpu_self_us = 0;
  double gpu_backward_us = 0;  // modules: of gpu_us, what the backward pass launched
  double flop = 0;             // of operators whose shapes are known; else 0
  // Device memory that it allocated less what it freed, as a framework's allocator reports it.
  int64_t memory_bytes = 0, memory_self_bytes = 0;
};

// What calls of one operator or range are told apart by.
enum class Grouping : uint8_t {
  name,   // nothing else
  shape,  // of the inputs, as recorded: "[[64,32],[16,32]]"
  stack,  // lines of Python around it, innermost first, 5 at most
  layer,  // the innermost module around it; of the backward pass: that of the forward operator
  line,   // the line of the program's own code
};

// A line of code from which calls of one kind were made.
struct PlaceRow {
  std::string kind;   // "synchronization", "allocation", "data_loading", "transfer"
  std::string place;  // "train.py:41 main"
  uint64_t count = 0;
  double total_us = 0;
};

// Arithmetic of operators whose shapes are known, and that began in one of the window's steps; all
// 0 where they launched little of the steps' work. With `i` over these operators, N the number of
// all ranks' steps and S the sum of their lengths, each times the GPUs of its process for which
// compute kernels were launched in the process's steps (one at least):
//   flop_per_step     sum flop_i / N: of all GPUs of a process
//   tflops            sum flop_i / S: of a GPU
//   mfu_pct           100 * sum (flop_i / peak_i) / S; peak_i: of the device at the operator's
//                     precision. 0: one of them is not known
//   counted_time_pct  100 * (compute kernels' time that these operators launched) / (that of all
//                     compute kernels that a step launched), whenever they ran
struct Arithmetic {
  double flop_per_step = 0, tflops = 0, mfu_pct = 0, counted_time_pct = 0;
};

struct OperatorTables {
  std::vector<OperatorRow> operators, modules;  // most GPU time first
  std::vector<OperatorRow> grouped;             // operators by name and Grouping; by name: empty
  std::vector<PlaceRow> places;                 // most time first
  std::vector<OwnerRow> memory_owners;          // of the process that holds most; most bytes first
  // By process: of device memory given out after its first step and before its last, what was still
  // held in the end; most bytes first.
  std::map<const Process*, std::vector<OwnerRow>> kept_memory;
  Arithmetic arithmetic;
};

OperatorTables make_operator_tables(std::span<const Timeline> timelines,
                                    Grouping grouping = Grouping::name);

}  // namespace gpuprof::analysis
