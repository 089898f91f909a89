// SPDX-License-Identifier: Apache-2.0
// For how long threads that issue work could run but had no processor, in a window: other programs
// had it, or a CPU limit was used up. The kernel counts it for each thread
// (/proc/thread-self/schedstat). A thread's own hooks read it after a record of the program's that
// ends more than a millisecond after the one before, with the first one of each buffer, and at step
// boundaries. The file takes 2 to 9 us, and more from the program's caches: 40 us of a step. So it
// is read only if the thread has left its processor since, which getrusage(2) tells in 1 us; where
// steps are short, every 5 ms.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Of the calling thread, at `ticks`; nothing where the kernel does not count. `within`: a step of
// the window has come before, and another one comes. See also note_silence() in record/recorder.h.
void note_processor_wait(uint64_t ticks, bool within);

// Drain thread.
void processor_waits_begin();  // a window opens
// What was read since the last call, as a Counters message; false: nothing.
bool encode_processor_waits(ByteBuffer& out, uint32_t clock_shift);

}  // namespace gpuprof
