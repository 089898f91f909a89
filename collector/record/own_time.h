// SPDX-License-Identifier: Apache-2.0
// What we take of the program's threads in a window, other than a record's own 50 ns, is recorded:
// reports take it out of the program's time. Call stacks are not noted here: the encoder knows what
// they took.
#pragma once

#include <cstdint>

#include "formats/core/own_time.h"

namespace gpuprof {

// [begin, end) of the calling thread, ticks; what took less than 5 us is left out. Not between
// reserve_record() and commit_record(). A thread without a buffer makes no calls of the program's:
// nothing is noted.
void note_own_time(OwnTime what, uint64_t begin, uint64_t end);
// The same for all threads at once: of the drain thread.
void note_own_time_of_all(OwnTime what, uint64_t begin, uint64_t end);

}  // namespace gpuprof
