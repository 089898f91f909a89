// SPDX-License-Identifier: Apache-2.0
// What a memory snapshot is made of: memory of each GPU that was allocated and released, in order.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Memory that was allocated or, as a whole, released.
struct MemoryVizChange {
  int64_t time;
  uint64_t address;  // where the trace does not tell: made up, the same for both ends of a block
  int64_t bytes;     // negative: released
  bool tensor;       // of a framework's allocator
  const Process* process;
  EventIndex event;
  const LiveAllocation* before;  // allocated before the window; then there is no event
};

// By the GPU's number in the snapshot. Of several windows of a process a block is allocated once,
// and released when a later one shows that it is gone. A single process keeps its devices'
// ordinals; GPUs of several are counted through, since addresses are those of one process.
std::map<uint32_t, std::vector<MemoryVizChange>> memory_viz_changes(const Trace& trace);

// Where a framework's blocks lay that were in no segment (memory of CUDA's) then: begins of address
// ranges, and their ends; blocks that touch are one range.
std::map<uint64_t, uint64_t> ranges_without_segment(const std::vector<MemoryVizChange>& changes);

// Whether addresses are made up: a release is then taken for that of the newest block of its size.
bool lacks_addresses(const Trace& trace);

}  // namespace gpuprof
