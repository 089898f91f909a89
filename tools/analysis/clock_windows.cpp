// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/clock_windows.h"

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpuprof::analysis {
namespace {

auto process_key(const Process& process) {
  const dump::Header& header = process.header;
  return std::tuple(std::string(header.host()), header.pid(), header.os_start_time());
}

bool by_clock(const Process& process) { return process.step_source.starts_with("time:"); }

bool by_own_steps(const Process& process) {
  return !process.step_source.empty() && process.step_source != "auto" && !by_clock(process);
}

}  // namespace

size_t leave_out_clock_windows(Trace& trace) {
  std::set<decltype(process_key(std::declval<Process>()))> with_own_steps;
  for (const Process& process : trace.processes) {
    if (by_own_steps(process)) with_own_steps.insert(process_key(process));
  }
  return std::erase_if(trace.processes, [&](const Process& process) {
    return by_clock(process) && with_own_steps.contains(process_key(process));
  });
}

}  // namespace gpuprof::analysis
