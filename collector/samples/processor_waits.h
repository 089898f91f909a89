// SPDX-License-Identifier: Apache-2.0
// For how long threads that issue work could run but had no processor, in a window: other programs
// had it, or a CPU limit was used up. The kernel counts it for each thread
// (/proc/thread-self/schedstat). A thread's own hooks read it after a record of the program's that
// ends more than a millisecond after the one before, with the first one of each buffer, and at each
// step boundary: two microseconds, a thousand times a second or once in a thousand records.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Of the calling thread, at `ticks`; nothing where the kernel does not count. See also
// note_silence() in record/recorder.h.
void note_processor_wait(uint64_t ticks);

// Drain thread.
void processor_waits_begin();  // a window opens
// What was read since the last call, as a Counters message; false: nothing.
bool encode_processor_waits(ByteBuffer& out, uint32_t clock_shift);

}  // namespace gpuprof
