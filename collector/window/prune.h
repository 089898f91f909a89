// SPDX-License-Identifier: Apache-2.0
// GPUPROF_KEEP: the process that makes a run's folder removes older runs beside it, in pieces
// between windows. Drain thread only.
#pragma once

#include <cstdint>

namespace gpuprof {

// Once, when the session has begun.
void prune_begin();
// Goes on for about `budget_ns`, 0.5 s at most. False: there is nothing to do any more.
bool prune_some(uint64_t budget_ns);

}  // namespace gpuprof
