// SPDX-License-Identifier: Apache-2.0
// Which communicator a handle of a process stands for. Thread-safe on a trace that nobody changes.
#pragma once

#include <cstdint>

#include "formats/trace/trace.h"

namespace gpuprof {

// Equal for all ranks of a communicator. `handle`: ncclComm_t as that process had it; `time`: when
// the call began, in ns since the Unix epoch, since a handle may be used again. 0: not known.
uint64_t communicator_identity(const Process& process, uint64_t handle, int64_t time);

}  // namespace gpuprof
