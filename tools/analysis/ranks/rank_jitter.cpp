// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/rank_jitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/analysis/findings.h"

namespace gpuprof::analysis {
namespace {

// As stages of a pipeline do.
bool ranks_send_and_receive(const Report& report) {
  double all = 0, between_two = 0;
  for (const CollectiveRow& row : report.tables.collectives) {
    all += row.total_us;
    if (row.name == "ncclSend" || row.name == "ncclRecv") between_two += row.total_us;
  }
  return 2 * between_two > all;
}

const char* why_ranks_wait(const Report& report) {
  return ranks_send_and_receive(report)
             ? "They wait in sends and receives, as stages of a pipeline do while it fills and "
               "drains: more micro-batches in a step, or an interleaved schedule, make that less"
             : "Work that differs between ranks from step to step does that (lengths of "
               "sequences, data loading, the host)";
}

constexpr double kMostOfTimePct = 75;  // of the joint collectives

// The one that is last most often, or that there is none.
std::string who_is_last(const std::vector<RankSpeed>& speeds, const RankSpeed& most) {
  constexpr double kMorePct = 5;  // than the next one; less is chance
  for (const RankSpeed& each : speeds) {
    if (&each != &most && each.last_pct > most.last_pct - kMorePct) {
      return "several are last about as often";
    }
  }
  return fmt::format("{} is last most often, {:.0f} % of the time",
                     most.rank >= 0 ? fmt::format("rank {}", most.rank) : std::string("one"),
                     most.last_pct);
}

}  // namespace

bool one_is_mostly_last(const Report& report) {
  return std::any_of(report.speeds.begin(), report.speeds.end(),
                     [](const RankSpeed& speed) { return speed.last_pct > kMostOfTimePct; });
}

void add_rank_jitter(double waited_pct, Report& report) {
  const bool straggler =
      std::any_of(report.verdict.begin(), report.verdict.end(),
                  [](const Verdict& verdict) { return verdict.cause == Cause::straggler; });
  if (straggler || waited_pct < finding_row(FindingKind::rank_jitter).limit.value) return;
  const auto most = std::max_element(
      report.speeds.begin(), report.speeds.end(),
      [](const RankSpeed& a, const RankSpeed& b) { return a.last_pct < b.last_pct; });
  // A middle stage takes part in most of a pipeline's messages, and so is last in most.
  if (most->last_pct > kMostOfTimePct && !ranks_send_and_receive(report)) return;
  add_finding<FindingKind::rank_jitter>(report.findings, waited_pct, waited_pct, report.unit(),
                                        who_is_last(report.speeds, *most), why_ranks_wait(report));
}

}  // namespace gpuprof::analysis
