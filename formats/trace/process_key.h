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

// Host, pid, start time: a process whose rank is not asked for.
using ProcessStart = std::tuple<std::string, uint32_t, uint64_t>;
ProcessStart start_of(const Process& process);

// Of a map by ProcessStart, the entry of the process that this DataLoader's worker loads for;
// end(): there is none. A worker that does not know when that started has the first of its host and
// pid.
template <typename ByStart>
auto loader_of(const Process& worker, ByStart& processes) {
  const dump::Header& h = worker.header;
  const uint64_t start = h.parent_start_time();
  const auto at = processes.lower_bound(ProcessStart{h.host(), h.parent_pid(), start});
  if (at == processes.end()) return at;
  const auto& [host, pid, started] = at->first;
  const bool same = host == h.host() && pid == h.parent_pid() && (start == 0 || started == start);
  return same ? at : processes.end();
}

// Windows of one process lie together; processes in the order in which they come in the trace.
std::vector<std::vector<const Process*>> by_process(const Trace& trace);

}  // namespace gpuprof
