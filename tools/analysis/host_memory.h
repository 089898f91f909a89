// SPDX-License-Identifier: Apache-2.0
// What the program allocated on the host in the windows, by the line of code that did: estimates
// from the samples of the activity `malloc` (formats/trace/heap.h has what one stands for).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// Sums over all processes and windows. Held: not given back before its window ended.
struct HostMemoryRow {
  std::string place;  // "train.py:41 main"
  uint64_t samples = 0;
  double bytes = 0, count = 0, held_bytes = 0;
};

struct HostMemory {
  uint64_t samples = 0;
  double bytes = 0, count = 0, held_bytes = 0;
  std::vector<HostMemoryRow> rows;  // most bytes first
};

HostMemory host_memory(const Trace& trace);

// The program's own line that allocated; where no frame is of it, the innermost function that did
// not allocate for another. "": not known.
std::string host_memory_place(const StackTable& stacks, StackIndex stack);

}  // namespace gpuprof::analysis
