// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/hidden_savings.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/analysis/verdict.h"

namespace gpuprof::analysis {
namespace {

// Its part is time inside calls. Of other parts what lies between calls stays without the cause.
bool is_of_calls(std::optional<Part> own) {
  return own == Part::allocation || own == Part::synchronization;
}

// Of the steps' time, in which the GPU is idle for what the host does of other causes than this
// one, and could do while the GPU works: no longer than that does, nor than steps then take.
double other_causes_pct(const Report& report, std::optional<Part> own, double saves_pct) {
  double sum = -report.device_idle_pct;
  for (size_t i = kBusyParts; i < kParts; ++i) {
    const Part part = static_cast<Part>(i);
    if (part == Part::unknown) continue;
    if (own == part && part == Part::other) sum += report.device_idle_pct;
    sum += own != part        ? report.breakdown_pct[i]
           : is_of_calls(own) ? 0
                              : report.no_processor_pct[i];
  }
  return std::clamp(sum, 0.0, std::min(report.gpu_utilization_pct, 100 - saves_pct));
}

}  // namespace

void add_hidden(const Report& report, std::optional<Part> own, bool has_streams, double waited_pct,
                Verdict& verdict) {
  double hidden = verdict.saves_pct - verdict.share_pct;
  if (hidden < kWorthNamingPct || verdict.cause == Cause::straggler) return;
  // The share is without waits for a processor inside the calls that go, and the saving is not.
  const double waits =
      is_of_calls(own) ? std::min(hidden, report.no_processor_pct[static_cast<size_t>(*own)]) : 0;
  hidden -= waits;
  if (waits >= kWorthNamingPct) {
    verdict.evidence.push_back(
        fmt::format("{:.1f} of these {:.1f} % are waits for a processor inside these calls, which "
                    "machine_busy has, too",
                    waits, verdict.saves_pct));
  }
  const double others =
      std::min(hidden, other_causes_pct(report, own, verdict.saves_pct) + waited_pct);
  if (others >= kWorthNamingPct) {
    verdict.evidence.push_back(fmt::format(
        "{:.1f} of these {:.1f} % are time of other causes, which the host would then spend while "
        "the GPU works{}",
        others, verdict.saves_pct,
        waited_pct >= kWorthNamingPct ? ", and waits of other ranks" : ""));
  }
  const double beside = std::min(hidden - others, report.gpu_utilization_pct);
  if (has_streams && beside >= kWorthNamingPct) {
    verdict.evidence.push_back(
        fmt::format("{:.1f} of these {:.1f} % are GPU work that would then run beside other work",
                    beside, verdict.saves_pct));
  }
}

}  // namespace gpuprof::analysis
