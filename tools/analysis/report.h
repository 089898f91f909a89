// SPDX-License-Identifier: Apache-2.0
// All that `gpuprof report` says, as data. docs/REPORT.md defines every figure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/analysis/anatomy.h"
#include "tools/analysis/curves.h"
#include "tools/analysis/data_workers.h"
#include "tools/analysis/finding_table.h"
#include "tools/analysis/host_memory.h"
#include "tools/analysis/host_samples.h"
#include "tools/analysis/left_out_kinds.h"
#include "tools/analysis/operators.h"
#include "tools/analysis/pipeline.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/ranks/collective_times.h"
#include "tools/analysis/standstill.h"
#include "tools/analysis/tables.h"
#include "tools/analysis/thread_states.h"
#include "tools/analysis/worker_lines.h"

namespace gpuprof::analysis {

enum class Cause : uint8_t {
  data_loading,
  kernel_launch,
  allocation,
  synchronization,
  communication,
  transfer,
  straggler,
  gpu_throttled,
  host_work,
  machine_busy,  // threads could run and had no processor
  compute,       // healthy: the GPU is the limit
};
inline constexpr size_t kCauseCount = static_cast<size_t>(Cause::compute) + 1;  // the last
std::string_view cause_name(Cause cause);

struct Verdict {
  Cause cause;
  double share_pct;   // of the steps' wall time
  double saves_pct;   // of it, by replay without the cause
  double confidence;  // 0 to 1: how well the replay meets what was recorded, and how many steps
  std::vector<std::string> evidence;
  std::string advice;
  // By step, of causes with a part of their own: the share's median, and what eight of ten steps
  // lie between.
  bool spread_known = false;
  double median_pct = 0, low_pct = 0, high_pct = 0;
  size_t few_steps = 0;  // most of its time lies in that many; 0: it is steady
};

struct StepRow {
  int32_t rank;
  uint32_t window;
  StepAnatomy anatomy;
  size_t process = 0;  // in Report::processes
};

// One that has steps, in whatever windows.
struct ProcessRow {
  int32_t rank;  // -1: it has none
  std::string host;
  uint32_t pid;
};

struct StepTime {
  double median_us = 0, mean_us = 0, p95_us = 0;
};

// What was profiled, as far as it was recorded.
struct Program {
  std::string command;                   // of the first process
  std::vector<std::string> hosts, gpus;  // distinct ones
};

// How much of it is computed.
enum class Depth : uint8_t {
  tables,  // sums over the steps' work and calls, and curves; of the fields below those so marked
  all,
};

struct Report {
  Depth depth = Depth::all;
  Grouping grouping = Grouping::name;
  Program program;
  size_t ranks = 0;  // distinct ones; processes without a rank count as one
  std::vector<ProcessRow> processes;
  size_t world_size = 0;       // of the job, as far as a rank says it; 0: not known
  bool gpu_timed = false;      // some work on a GPU was recorded
  std::vector<StepRow> steps;  // Depth::tables: without their parts
  bool whole_windows = false;  // there are none: `steps` are the processes' windows as a whole
  std::string step_source;     // what marks the steps, as GPUPROF_STEP names it; several: "a, b";
                               // empty: not known, or there are none
  StepTime step_time;
  std::array<double, kParts> breakdown_pct{};  // sum 100, or all 0: no steps, no GPU times
  std::array<double, 2> overlapped_pct{};      // communication, transfer
  double device_idle_pct = 0;                  // within `other`
  // Within the idle parts: what they would not have lasted, had the launching thread had a
  // processor.
  std::array<double, kParts> no_processor_pct{};
  std::vector<ThreadStates> thread_states;  // empty: not known
  std::optional<double> processor_wait_us;  // of the threads that steps run on, a step, whatever
                                            // the GPU did meanwhile; nothing: not recorded
  double gpu_utilization_pct = 0;           // by recorded work of any GPU of a process
  double busiest_gpu_pct = 100;             // of processes with several: that of the busiest one,
                                            // mean over processes
  std::vector<Verdict> verdict;             // most saving first
  std::vector<std::string> pauses;          // of a busy machine: what is not taken for a cause
  std::string reason;                       // why `verdict` is empty
  std::vector<Finding> findings;
  std::optional<Standstill> standstill;  // if it is not over, there is no verdict
  Tables tables;
  OperatorTables operators;
  HostMemory host_memory;
  std::optional<DataLoading> loading;
  WorkerLines worker_lines;
  std::vector<Curves> curves;  // by process and window
  HostSamples host_samples;
  std::vector<RankSpeed> speeds;     // of ranks that can be compared, else empty
  std::vector<SlowRank> slow_ranks;  // of these, by window
  CollectiveTimes collective_times;
  std::optional<Pipeline> pipeline;           // of a trace that names a pipeline's operations
  std::array<uint64_t, kLossKinds> losses{};  // as far as is known
  bool losses_known = true;           // false: a file was cut, or is damaged, or is not of gpuprof
  std::string unrecorded;             // kinds of GPU work that were not to be recorded; empty: none
  bool work_lost = false;             // so much GPU work that the parts of a step have too little
  LeftOutKinds left_out;              // by GPUPROF_BUDGET
  std::vector<Cause> unknown_causes;  // that need it; none of them is in `verdict`
  std::optional<double> own_cost_pct;  // of the windows; nothing: not known
  double replay_error_pct = 0;         // of the replay without a change against what was recorded

  // Of the idle time, or of one part of it: the share that host samples stand for, 0 to 1; with no
  // such time 1.
  double sampled_share() const;
  double sampled_share(Part part) const;
  double no_processor_sum_pct() const {
    double sum = 0;
    for (const double each : no_processor_pct) sum += each;
    return sum;
  }
  // Some GPU work is not among the recorded work, so that the GPU was busy for longer.
  bool utilization_is_least() const { return !unrecorded.empty() || work_lost; }
  bool ranked() const;  // each process has a rank
  double unknown_pct() const { return breakdown_pct[static_cast<size_t>(Part::unknown)]; }
  // What is looked at: "step", or "window".
  const char* unit() const { return whole_windows ? "window" : "step"; }
  // Of a sum over them: the mean.
  double per_unit(double sum) const {
    return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
  }
};

// What a report's sums are of. Valid as long as the trace.
struct ReportParts {
  std::vector<Timeline> timelines;              // in order of window
  std::vector<std::vector<StepAnatomy>> steps;  // of each of them
  std::vector<CollectiveCall> collectives;      // in order of timeline and event
};

// With Depth::tables these stay empty or 0: steps' parts, breakdown_pct, overlapped_pct,
// device_idle_pct, gpu_utilization_pct, verdict, reason, host_samples, speeds, collective_times,
// loading, worker_lines, replay_error_pct, and of the findings all but "job_stands", "host_clocks",
// "left_out_kinds" and those of step_findings.h.
// `grouping`: of `operators.grouped`. `parts`: with Depth::all gets what the sums are of, else
// null.
Report make_report(const Trace& trace, Depth depth = Depth::all, Grouping grouping = Grouping::name,
                   ReportParts* parts = nullptr);

}  // namespace gpuprof::analysis
