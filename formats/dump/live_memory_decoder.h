// SPDX-License-Identifier: Apache-2.0
// A dump's LiveMemory messages to Process::live_memory.
#pragma once

#include <functional>

#include "formats/trace/trace.h"

namespace gpuprof {

// Appends what a message says, with times in clock units; a second one of the same moment is left
// out. `frame_of` makes a frame of Process::stacks of one as the message has it. Null where the
// message is sound, else what is wrong with it.
const char* decode_live_memory(const dump::LiveMemory& in, Trace& trace, Process& process,
                               const std::function<uint64_t(uint64_t)>& frame_of);

// Leaves out of what was allocated when the window began what the window's own events give: a
// thread may allocate while that is written down. Times must be converted.
void join_live_memory(const Trace& trace, Process& process);

}  // namespace gpuprof
