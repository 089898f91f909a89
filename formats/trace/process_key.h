// SPDX-License-Identifier: Apache-2.0
// What makes several dumps windows of one process.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Host, pid, start time, and the rank, since containers have the same pids: the same for all
// windows of a process.
using ProcessKey = std::tuple<std::string, uint32_t, uint64_t, int32_t>;
ProcessKey key_of(const Process& process);

// Windows of one process lie together; processes in the order in which they come in the trace.
std::vector<std::vector<const Process*>> by_process(const Trace& trace);

}  // namespace gpuprof
