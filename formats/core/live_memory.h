// SPDX-License-Identifier: Apache-2.0
// A dump's LiveMemory message: what was allocated at a moment. Written by the process, and by the
// tools from the ring that a killed one left.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"
#include "formats/core/encode.h"
#include "formats/core/live_table.h"
#include "formats/core/ring_file.h"

namespace gpuprof {

// Values are part of the dump format.
enum class LiveMoment : uint32_t {
  unknown = 0,
  window_begins = 1,
  out_of_memory = 2,  // an allocation failed for want of memory
  left = 3            // what a ring holds: the process was killed, or still runs
};

struct LiveMemoryParts {
  LiveMoment moment;
  uint64_t ticks;
  const LiveRow* rows;
  size_t count;
  const FailedAllocationRow* failed;  // null: none
  const AllocatorRow* allocators;     // kMostAllocators of them
};

// Appends a serialized LiveMemory message. False when memory could not be had: what was appended is
// then not a message.
bool encode_live_memory(ByteBuffer& out, const LiveMemoryParts& parts, const NameResolver& names,
                        uint32_t clock_shift);

}  // namespace gpuprof
