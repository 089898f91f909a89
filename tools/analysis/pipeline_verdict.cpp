// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/analysis/verdict.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

// What explains so much of a slowdown is named as what it comes from.
constexpr double kExplains = 0.5;
constexpr const char* kSlowWorker =
    "Swap the slow worker, or look at its GPU's clocks and temperature and its host: the others "
    "wait for it.";
constexpr const char* kLongStage =
    "Give the last stage fewer layers: its loss and output layers are work that the others do not "
    "have.";
constexpr const char* kNeither =
    "Neither single workers nor the last stage explain it: lengths of sequences that differ "
    "between micro-batches and garbage collection do that. Balance micro-batches by their work.";

std::string what_explains(const Pipeline& in) {
  if (in.worst_workers >= kExplains && in.worst_workers >= in.last_stage) {
    return fmt::format("slow: {}, {:.0f} % of it ({:.2f} x the others' time)",
                       in.slow_workers[0].name, 100 * in.worst_workers, in.slow_workers[0].factor);
  }
  if (in.last_stage >= kExplains) {
    return fmt::format("slow: the last stage ({}), {:.0f} % of it ({:.2f} x the others' time)",
                       in.stages - 1, 100 * in.last_stage, in.stage_shares.back().factor);
  }
  return fmt::format(
      "neither slow workers ({:.0f} % of it) nor the last stage ({:.0f} %) explain it",
      100 * in.worst_workers, 100 * in.last_stage);
}

const char* advice_for(const Pipeline& in) {
  if (std::max(in.worst_workers, in.last_stage) < kExplains) return kNeither;
  return in.worst_workers >= in.last_stage ? kSlowWorker : kLongStage;
}

}  // namespace

void judge_pipeline(Report& report) {
  const Pipeline& in = *report.pipeline;
  report.verdict.clear();
  report.replay_error_pct =
      in.recorded_us > 0 ? 100 * std::abs(in.simulated_us - in.recorded_us) / in.recorded_us : 0;
  const double lost_pct = in.slowdown > 0 ? 100 * (1 - 1 / in.slowdown) : 0;
  if (lost_pct < kWorthNamingPct) {
    report.reason = fmt::format(
        "operations of the pipeline take about as long on all workers (slowdown {:.2f}); what the "
        "GPUs do in them is not recorded",
        in.slowdown);
    return;
  }
  report.reason.clear();
  std::erase_if(report.findings,
                [](const Finding& f) { return f.kind == FindingKind::whole_windows; });
  Verdict verdict{Cause::straggler, lost_pct, lost_pct, 0, {}, advice_for(in)};
  const double steps = std::min(1.0, static_cast<double>(in.steps) / 5);
  verdict.confidence =
      std::clamp((1 - 4 * report.replay_error_pct / 100) * (0.5 + 0.5 * steps), 0.05, 0.99);
  verdict.evidence.push_back(what_explains(in));
  verdict.evidence.push_back(
      fmt::format("by kind of operation there: {}, {:.0f} % of the slowdown ({:.2f} x the others')",
                  in.worst_kind.name, 100 * in.worst_kind.explains, in.worst_kind.factor));
  verdict.evidence.push_back(
      fmt::format("slowdown {:.3f}: {} a step, and {} with every operation the typical one of its "
                  "kind",
                  in.slowdown, format_us(in.simulated_us), format_us(in.ideal_us)));
  verdict.evidence.push_back(
      fmt::format("in {} of {} steps, since step {}", in.slow_steps, in.steps, in.slow_since));
  report.verdict.push_back(std::move(verdict));
}

}  // namespace gpuprof::analysis
