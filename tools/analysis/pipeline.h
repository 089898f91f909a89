// SPDX-License-Identifier: Apache-2.0
// Finds what slow workers and uneven stages cost a job that is parallel by pipeline and by data. It
// simulates the operations as they were, and with each the typical one of its kind.
// After Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI
// 2025), equations 1 to 5 and section 5.2. docs/REPORT.md, "Pipelines", has the definitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

enum class OperationKind : uint8_t {
  forward_compute,
  backward_compute,
  forward_send,
  forward_recv,
  backward_send,
  backward_recv,
  params_gather,  // of a stage, by all its data-parallel ranks
  grads_reduce,   // likewise
};
inline constexpr size_t kOperationKinds = 8;
const char* operation_name(OperationKind kind);

// One worker's: a stage of one data-parallel rank.
struct Operation {
  int64_t begin, end;  // ns
  int64_t sequence;    // of the micro-batch: which of the step's
  uint32_t worker;     // index in PipelineJob::workers
  OperationKind kind;
};

struct PipelineWorker {
  uint32_t data_rank, stage;
  auto operator<=>(const PipelineWorker&) const = default;
};

struct PipelineJob {
  std::vector<PipelineWorker> workers;  // in order
  std::vector<uint64_t> numbers;        // of the steps, ascending
  std::vector<std::vector<Operation>> steps;
  uint32_t data_ranks = 0, stages = 0;
};

// The operations of a trace that names them: forward-compute, backward-send and so on. They have
// the arguments `step` and `seq_id`, and lie on rows called "PP rank P, TP rank T, ...". Rows of
// the same name are data-parallel ranks in order of their number. Nothing: it is another trace.
std::optional<PipelineJob> pipeline_job(const Trace& trace);

// `explains`: the part of the slowdown that goes when these operations are set to the typical one:
// (T - T') / (T - T_ideal). Parts need not sum up to 1.
struct PipelineShare {
  std::string name;
  double explains = 0;
  // Their mean length over that of all others of the same kinds; 0: there are no others.
  double factor = 0;
};

struct Pipeline {
  size_t steps = 0;
  uint32_t data_ranks = 0, stages = 0, workers = 0;
  double recorded_us =
      0;  // a step, the mean: from its first operation's begin to the last one's end
  double simulated_us = 0;   // the same by simulation, without the host's delays between operations
  double ideal_us = 0;       // with every operation the typical one of its kind
  double slowdown = 1;       // S: simulated / ideal
  double worst_workers = 0;  // M_w: what the slowest 3 % of the workers explain, one at least
  double last_stage = 0;     // M_s: what the last stage explains
  std::vector<PipelineShare> stage_shares, kind_shares;
  std::vector<PipelineShare> slow_workers;  // those of worst_workers, slowest first
  PipelineShare worst_kind;                 // of the slow workers, or of the last stage
  size_t slow_steps = 0;    // in which the slowdown is at least half of what it is on the whole
  uint64_t slow_since = 0;  // the first of them
};

Pipeline analyse(const PipelineJob& job);

}  // namespace gpuprof::analysis
