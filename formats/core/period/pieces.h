// SPDX-License-Identifier: Apache-2.0
// Steps whose length changes as the program goes on: sequences grow, or a library takes another
// kernel for another shape. Within a piece of the launches they are alike, and what comes once in
// its steps comes once in all. Not thread-safe; memory comes from mmap.
#pragma once

#include "formats/core/period/period.h"

namespace gpuprof {

// As find_period. No period (confidence 0) unless some launch comes once in each step of most
// pieces, at the distances that these pieces have, all along. `changes`: these differ.
bool find_period_in_pieces(const uint32_t* kernels, size_t count, Period& out, bool& changes);

}  // namespace gpuprof
