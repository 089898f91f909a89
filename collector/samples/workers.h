// SPDX-License-Identifier: Apache-2.0
// What a PyTorch DataLoader's workers do while a window is open, seen from outside: CPU time, waits
// for a CPU, waits for the disk. They are known by their name, pt_data_worker, and stay asleep.
// Where PyTorch gives none (before 2.5), each fork of this process counts. A worker's view of
// itself: data_worker.h.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// All of it on the drain thread.
void workers_begin();                            // a window opens
void workers_sample(uint64_t ticks, bool last);  // takes a sample if one is due, or it is the last
// The samples since the last call as a Workers message; false: none.
bool encode_workers(ByteBuffer& out, uint32_t clock_shift);

}  // namespace gpuprof
