// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/left_out_windows.h"

#include <map>
#include <set>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/trace/process_key.h"

namespace gpuprof::analysis {
namespace {

bool by_clock(const Process& process) { return process.step_source.starts_with("time:"); }

// "auto": it was killed before a source was chosen.
bool by_own_steps(const Process& process) {
  return !process.step_source.empty() && process.step_source != "auto" && !by_clock(process);
}

}  // namespace

size_t leave_out_clock_windows(Trace& trace) {
  std::set<ProcessKey> with_own_steps;
  for (const Process& process : trace.processes) {
    if (by_own_steps(process)) with_own_steps.insert(key_of(process));
  }
  std::map<ProcessStart, std::set<uint32_t>> left_out;  // windows
  const size_t count = std::erase_if(trace.processes, [&](const Process& process) {
    const bool leaves = by_clock(process) && with_own_steps.contains(key_of(process));
    if (leaves) left_out[start_of(process)].insert(process.header.window());
    return leaves;
  });
  std::erase_if(trace.processes, [&](const Process& process) {
    if (!process.is_data_worker()) return false;
    const auto loader = loader_of(process, left_out);
    return loader != left_out.end() && loader->second.contains(process.header.window());
  });
  return count;
}

size_t leave_out_early_windows(Trace& trace) {
  std::set<ProcessKey> with_another;
  for (const Process& process : trace.processes) {
    if (!is_early_window(process.header.window()) && !process.window_steps().empty()) {
      with_another.insert(key_of(process));
    }
  }
  return std::erase_if(trace.processes, [&](const Process& process) {
    return is_early_window(process.header.window()) && with_another.contains(key_of(process));
  });
}

}  // namespace gpuprof::analysis
