// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/process_key.h"

#include <map>

namespace gpuprof {

ProcessKey key_of(const Process& process) {
  const dump::Header& h = process.header;
  return {h.host(), h.pid(), h.os_start_time(), h.rank()};
}

ProcessStart start_of(const Process& process) {
  const dump::Header& h = process.header;
  return {h.host(), h.pid(), h.os_start_time()};
}

std::vector<std::vector<const Process*>> by_process(const Trace& trace) {
  std::vector<std::vector<const Process*>> groups;
  std::map<ProcessKey, size_t> known;
  for (const Process& process : trace.processes) {
    if (process.is_data_worker()) continue;
    const auto [at, fresh] = known.emplace(key_of(process), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(&process);
  }
  return groups;
}

}  // namespace gpuprof
