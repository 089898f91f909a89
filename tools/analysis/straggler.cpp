// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tools/analysis/ranks/rank_jitter.h"
#include "tools/analysis/verdict.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

constexpr auto kStraggler = static_cast<size_t>(Fix::straggler);

}  // namespace

double slowness_of(const RankSpeed& speed) {
  return std::max({speed.compute, speed.data_loading, speed.host});
}

double awaited_pct(const Report& report) {
  double sum = 0, ranks = 0;
  for (const RankSpeed& speed : report.speeds) {
    if (!speed.collectives) continue;
    ++ranks;
    if (slowness_of(speed) > 1) sum += speed.awaited_us;
  }
  return ranks > 0 && report.step_time.mean_us > 0 ? 100 * sum / ranks / report.step_time.mean_us
                                                   : 0;
}

// Its factors hold for the median step. Of a pause they would take far too much; and a pause of
// another rank makes little of what they take, where others mostly wait for one. But of a rank that
// is slow in some steps only the median has more than the mean.
StragglerCost Judge::straggler_of_median_step(double waited_pct, const Report& report) const {
  const double base = median_ns_[0], mean = step_ns_[0];
  const double saved_pct = mean > 0 ? 100 * (mean - step_ns_[kStraggler]) / mean : 0;
  const double steps = report.step_time.median_us * waited_steps_;
  StragglerCost out;
  if (steps <= 0) return out;
  const double steadily = 100 * steadily_waited_us_ / steps;
  // Others wait for those that are slower, and not by chance for one that is ready.
  const double awaited =
      awaited_pct(report) * report.step_time.mean_us / report.step_time.median_us;
  out.share_pct = std::min({exposed_pct(report, waited_pct), steadily, awaited});
  out.saves_pct = std::max(0.0, saved_pct);
  if (base <= 0) return out;
  const double of_which = one_is_mostly_last(report) ? std::min(base, mean) : mean;
  const double saves = 100 * (base - median_ns_[kStraggler]) / base;
  out.saves_pct = of_which > 0 ? std::max(0.0, std::min(saves, saved_pct * mean / of_which)) : 0;
  return out;
}

// What the median step has of it, and no more than all steps have: in per cent of the mean, as all
// else.
StragglerCost Judge::straggler_of_all_steps(double waited_pct, const Report& report) const {
  const double mean = step_ns_[0];
  const double steps = report.step_time.mean_us * waited_steps_;
  StragglerCost out;
  const double steadily = steps > 0 ? 100 * steadily_waited_us_ / steps : 0;
  out.share_pct = std::min({exposed_pct(report, waited_pct), steadily, awaited_pct(report)});
  double saved_ns = mean - step_ns_[kStraggler];
  if (median_ns_[0] > 0) saved_ns = std::min(saved_ns, median_ns_[0] - median_ns_[kStraggler]);
  out.saves_pct = mean > 0 ? std::max(0.0, 100 * saved_ns / mean) : 0;
  return out;
}

void Judge::say_of_median_step(double waited_pct, const Report& report, Verdict& verdict) const {
  constexpr double kDiffer = 1.2;  // mean and median
  const double median_us = report.step_time.median_us;
  if (report.step_time.mean_us < kDiffer * median_us) return;
  const StragglerCost cost = straggler_of_median_step(waited_pct, report);
  verdict.evidence.push_back(fmt::format(
      "a few {0}s are far longer than others: of the median {0}, {1}, it saves {2:.1f} %",
      report.unit(), format_us(median_us), cost.saves_pct));
}

}  // namespace gpuprof::analysis
