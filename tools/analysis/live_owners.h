// SPDX-License-Identifier: Apache-2.0
// Who holds the memory that the memory log (GPUPROF_MEMORY=1) lists.
#pragma once

#include <string>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/analysis/memory_owners.h"
#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// The line of code that allocated it; else the step in which it was.
std::string owner_of(const Process& process, const LiveAllocation& allocation);

// Of GPUs' memory: of a framework's blocks where there are any, else of CUDA's allocations. Most
// bytes first.
std::vector<OwnerRow> live_owners(const Process& process, const LiveMemory& live);

// Memory that CUDA, or a framework's allocator, did not give.
struct Refused {
  int64_t time;
  uint64_t bytes;
  bool host, block;
};

// Whether the process was given as much after that, by what its windows and their lists say.
bool got_later(const Trace& trace, const Process& process, const Refused& refused);

// Where an allocation failed for want of memory: what was asked for, what there was. If the process
// was given as much later, or did more steps, it did not end by that: another finding.
void out_of_memory(const Trace& trace, const Process& process, std::vector<Finding>& out);

}  // namespace gpuprof::analysis
