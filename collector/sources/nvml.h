// SPDX-License-Identifier: Apache-2.0
// Clocks, power, temperature and the like of the GPUs, from the driver's libnvidia-ml, ten times a
// second while a window is open. Asked on the drain thread: a slow answer delays no call of the
// program's.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

// All of it on the drain thread.
void nvml_begin();  // a window opens; says in one line what is missing, if anything is
void nvml_sample(uint64_t ticks);  // takes a sample if one is due
// The samples since the last call as a Counters message; false: none.
bool encode_counters(ByteBuffer& out, uint32_t clock_shift);

}  // namespace gpuprof
