// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tools/analysis/statistics.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kFewestSteps = 3;  // of a rank, for one to stand out

double part_us(const StepRow& row, Part part) {
  const auto index = static_cast<size_t>(part);
  const int64_t not_its =
      (part == Part::other ? row.anatomy.device_idle : 0) + row.anatomy.no_processor[index];
  return static_cast<double>(row.anatomy.parts[index] - not_its) / 1000;
}

}  // namespace

Spread spread_of(const Report& report, Part part) {
  Spread out;
  std::vector<double> shares, all_us;
  std::map<int32_t, std::vector<double>> ranks;
  for (const StepRow& row : report.steps) {
    const double us = part_us(row, part);
    const auto length = static_cast<double>(row.anatomy.end - row.anatomy.begin) / 1000;
    if (length > 0) shares.push_back(100 * us / length);
    all_us.push_back(us);
    ranks[row.rank].push_back(us);
  }
  out.median_pct = quantile(shares, 0.5);
  out.low_pct = quantile(shares, 0.1);
  out.high_pct = quantile(shares, 0.9);
  out.median_us = quantile(all_us, 0.5);
  double sum = 0, steady = 0;
  for (const auto& [rank, times] : ranks) {
    const double most = kStandsOut * quantile(times, 0.5);
    for (const double us : times) {
      sum += us;
      steady += times.size() < kFewestSteps ? us : std::min(us, most);
    }
  }
  if (sum <= 0) return out;
  out.steady = steady / sum;
  if (out.steady >= kSteadyShare) return out;
  for (const double us : all_us) out.longest_us = std::max(out.longest_us, us);
  for (const double us : all_us) out.few += us >= kOfLongest * out.longest_us;
  return out;
}

std::string describe(const Spread& spread, const Report& report) {
  if (report.steps.size() < kFewestSteps) return {};
  if (spread.few == 0) {
    return fmt::format("by {}: median {:.1f} %, eight of ten between {:.1f} and {:.1f} %",
                       report.unit(), spread.median_pct, spread.low_pct, spread.high_pct);
  }
  return fmt::format("in {} of {}: {} {}; the median {} has {}", spread.few, all_steps(report),
                     format_us(spread.longest_us), spread.few == 1 ? "once" : "at most",
                     report.unit(), format_us(spread.median_us));
}

std::string all_steps(const Report& report) {
  std::string out = fmt::format("{} {}s", report.steps.size(), report.unit());
  const size_t members = report.processes.size();
  if (members < 2 || report.steps.size() <= members) return out;
  const char* const name = report.ranked() ? "ranks" : "processes";
  if (report.steps.size() % members != 0) return out + fmt::format(" of {} {}", members, name);
  return out + fmt::format(" ({} on each of {} {})", report.steps.size() / members, members, name);
}

}  // namespace gpuprof::analysis
