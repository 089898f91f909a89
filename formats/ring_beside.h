// SPDX-License-Identifier: Apache-2.0
// What the ring that lies beside a whole dump tells of its process since: it still runs, or was
// killed.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/trace/trace.h"

namespace gpuprof {

// How many boundaries of steps the process has passed. Nothing: no ring lies there, since the
// process has ended in order or the dump was moved, or it cannot be read.
std::optional<uint64_t> boundaries_beside(const Process& process);

}  // namespace gpuprof
