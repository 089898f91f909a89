// SPDX-License-Identifier: Apache-2.0
// How long threads ran, and waited for a processor, by the kernel's counts: read with each host
// sample of a thread.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// Reads the counts of a thread of this process. By the thread that samples alone.
void note_thread_times(uint32_t tid);
// A Counters message of what was noted since the last call; false: nothing. Drain thread.
bool encode_thread_times(ByteBuffer& out, uint32_t clock_shift);

}  // namespace gpuprof
