// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/left_out_windows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/trace/process_key.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {
namespace {

// "auto": it was killed before a source was chosen.
bool by_any_steps(const Process& process) {
  return !process.step_source.empty() && process.step_source != "auto" && !goes_by_clock(process);
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

// Takes them out, and the same windows of workers that load data for their processes.
template <typename Leaves>
size_t leave_out(Trace& trace, const Leaves& leaves) {
  std::map<ProcessStart, std::set<uint32_t>> left_out;  // windows
  const size_t count = std::erase_if(trace.processes, [&](const Process& process) {
    if (!leaves(process)) return false;
    left_out[start_of(process)].insert(process.header.window());
    return true;
  });
  std::erase_if(trace.processes, [&](const Process& process) {
    if (!process.is_data_worker()) return false;
    const auto loader = loader_of(process, left_out);
    return loader != left_out.end() && loader->second.contains(process.header.window());
  });
  return count;
}

// Windows that are `worse`, of processes that have one that is `better`.
size_t leave_out_beside(Trace& trace, bool (*worse)(const Process&),
                        bool (*better)(const Process&)) {
  std::set<ProcessKey> with_better;
  for (const Process& process : trace.processes) {
    if (better(process)) with_better.insert(key_of(process));
  }
  return leave_out(trace, [&](const Process& process) {
    return worse(process) && with_better.contains(key_of(process));
  });
}

bool uses_a_gpu(const Trace& trace, const Process& process) {
  for (size_t i = 0; i < process.events.size(); ++i) {
    const Kind kind = trace.shapes[process.events.shape_of(i)].kind;
    if (is_stream_work(kind) || kind == Kind::launch || kind == Kind::copy || kind == Kind::set ||
        kind == Kind::collective) {
      return true;
    }
  }
  return false;
}

}  // namespace

size_t leave_out_clock_windows(Trace& trace) {
  return leave_out_beside(trace, goes_by_clock, by_any_steps);
}

size_t leave_out_inferred_windows(Trace& trace) {
  return leave_out_beside(trace, is_inferred, by_own_marks) +
         leave_out_beside(trace, by_syncs, by_recurrence);
}

size_t leave_out_idle_windows(Trace& trace) {
  const bool any =
      std::any_of(trace.processes.begin(), trace.processes.end(), [&](const Process& process) {
        return by_any_steps(process) && !process.is_data_worker() && uses_a_gpu(trace, process);
      });
  return !any ? 0 : leave_out(trace, [&](const Process& process) {
    return goes_by_clock(process) && process.header.rank() < 0 && !process.is_data_worker() &&
           !uses_a_gpu(trace, process);
  });
}

size_t leave_out_early_windows(Trace& trace) {
  // The most steps of each process's windows.
  std::map<ProcessKey, size_t> early, scheduled;
  const auto is_early = [](const Process& process) {
    return is_early_window(process.header.window());
  };
  for (const Process& process : trace.processes) {
    size_t& most = (is_early(process) ? early : scheduled)[key_of(process)];
    most = std::max(most, process.window_steps().size());
  }
  // The recorder leaves an early one also beside one that was cut after a step or two.
  const auto early_says_more = [&](const ProcessKey& key) {
    const size_t steps = scheduled[key];
    return steps == 0 || (steps < kFewSteps && early[key] > steps);
  };
  return std::erase_if(trace.processes, [&](const Process& process) {
    const ProcessKey key = key_of(process);
    if (!early.contains(key)) return false;
    const bool cut = scheduled[key] != 0 && early_says_more(key);
    return is_early(process) ? !early_says_more(key) : cut;
  });
}

}  // namespace gpuprof::analysis
