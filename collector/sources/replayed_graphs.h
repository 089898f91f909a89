// SPDX-License-Identifier: Apache-2.0
// Executable CUDA graphs that were instantiated while CUPTI was off: which captured calls each of
// them replays, as the hooks saw them. CUPTI's node ids of such graphs are not known, so the reader
// of a dump finds out by order and launch shape which node is which call
// (formats/trace/graph_replay.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"
#include "formats/core/encode.h"

namespace gpuprof {

// From hooks, when the call has succeeded; handles of the driver. An update makes a new version.
// Nothing is kept while CUPTI tells of nodes by itself. On the calling thread.
void graph_instantiated(uint64_t exec, uint64_t graph);
void graph_updated(uint64_t exec, uint64_t graph);
void graph_destroyed(uint64_t exec);
// Executable graphs that hooks saw instantiated and not destroyed. Any thread.
size_t live_graphs();
// The most of them that ever lived at once. Any thread, without a lock.
size_t most_live_graphs();
// Whether CUPTI tells of nodes: between its attach and detach. Drain thread.
void cupti_tells_of_graphs(bool tells);

// The versions after number `after`, as a body of a dump's graphs chunk. Returns the newest number;
// `after`: there is none, or no memory. Drain thread.
uint64_t encode_replayed_graphs(ByteBuffer& out, uint32_t clock_shift, const NameResolver& names,
                                uint64_t after);

}  // namespace gpuprof
