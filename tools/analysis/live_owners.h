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

// Where an allocation failed for want of memory: what was asked for, what there was.
void out_of_memory(const Trace& trace, const Process& process, std::vector<Finding>& out);

}  // namespace gpuprof::analysis
