// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/left_out_windows.h"

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/trace/process_key.h"

namespace gpuprof::analysis {
namespace {

bool by_clock(const Process& process) { return process.step_source.starts_with("time:"); }

// "auto": it was killed before a source was chosen.
bool by_any_steps(const Process& process) {
  return !process.step_source.empty() && process.step_source != "auto" && !by_clock(process);
}

bool is_inferred(const Process& process) {
  const std::string_view source = process.step_source;
  return source == "forward" || source.starts_with("nccl:") || source.starts_with("graph:") ||
         source.starts_with("sync:");
}

bool by_syncs(const Process& process) { return process.step_source.starts_with("sync:"); }

// What takes the place of synchronizations that were none of steps.
bool by_recurrence(const Process& process) {
  const std::string_view source = process.step_source;
  return source.starts_with("nccl:") || source.starts_with("graph:");
}

bool by_own_marks(const Process& process) {
  const std::string_view source = process.step_source;
  return source == "manual" || source == "optimizer" || source.starts_with("nvtx:");
}

// Windows that are `worse`, of processes that have one that is `better`.
size_t leave_out(Trace& trace, bool (*worse)(const Process&), bool (*better)(const Process&)) {
  std::set<ProcessKey> with_better;
  for (const Process& process : trace.processes) {
    if (better(process)) with_better.insert(key_of(process));
  }
  std::map<ProcessStart, std::set<uint32_t>> left_out;  // windows
  const size_t count = std::erase_if(trace.processes, [&](const Process& process) {
    const bool leaves = worse(process) && with_better.contains(key_of(process));
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

}  // namespace

size_t leave_out_clock_windows(Trace& trace) { return leave_out(trace, by_clock, by_any_steps); }

size_t leave_out_inferred_windows(Trace& trace) {
  return leave_out(trace, is_inferred, by_own_marks) + leave_out(trace, by_syncs, by_recurrence);
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
