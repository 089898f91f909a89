// SPDX-License-Identifier: Apache-2.0
// The process and device ids that rows go by in a Kineto-style JSON file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "formats/trace.h"

namespace gpuprof {

// Host, pid, start time, and the rank, since containers have the same pids: the same for all
// windows of a process.
using ProcessKey = std::tuple<std::string, uint32_t, uint64_t, int32_t>;
ProcessKey key_of(const Process& process);

// Windows of one process lie together; processes in the order in which they come in the trace.
std::vector<std::vector<const Process*>> by_process(const Trace& trace);

struct KinetoIds {
  uint32_t pid = 0;
  uint32_t overhead_pid = 0;
  std::map<uint32_t, uint32_t> gpus;  // device -> pid of its rows
};

// Unique among `processes`. A single process keeps its own: pid, and devices by ordinal; of
// several, GPUs are counted through.
std::map<ProcessKey, KinetoIds> assign_kineto_ids(std::span<const Process* const> processes);

}  // namespace gpuprof
