// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tools/analysis/findings.h"
#include "tools/analysis/verdict.h"
#include "tools/describe.h"

namespace gpuprof::analysis {
namespace {

double quantile(std::vector<double> sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

StepTime step_time_of(const std::vector<StepRow>& steps) {
  std::vector<double> lengths;
  double sum = 0;
  for (const StepRow& row : steps) {
    lengths.push_back(static_cast<double>(row.anatomy.end - row.anatomy.begin) / 1000);
    sum += lengths.back();
  }
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  return {quantile(lengths, 0.5), sum / static_cast<double>(lengths.size()),
          quantile(lengths, 0.95)};
}

void sum_up(Report& report) {
  double wall = 0, device_idle = 0;
  std::array<double, kParts> parts{};
  std::array<double, 2> overlapped{};
  for (const StepRow& row : report.steps) {
    wall += static_cast<double>(row.anatomy.end - row.anatomy.begin);
    for (size_t i = 0; i < kParts; ++i) parts[i] += static_cast<double>(row.anatomy.parts[i]);
    for (size_t i = 0; i < 2; ++i) overlapped[i] += static_cast<double>(row.anatomy.overlapped[i]);
    device_idle += static_cast<double>(row.anatomy.device_idle);
  }
  if (wall <= 0) return;
  for (size_t i = 0; i < kParts; ++i) report.breakdown_pct[i] = 100 * parts[i] / wall;
  for (size_t i = 0; i < 2; ++i) report.overlapped_pct[i] = 100 * overlapped[i] / wall;
  for (size_t i = 0; i < kBusyParts; ++i) report.gpu_utilization_pct += report.breakdown_pct[i];
  report.device_idle_pct = 100 * device_idle / wall;
}

// Windows of the same number are of the same time on all ranks.
std::vector<std::vector<Timeline>> timelines_by_window(const Trace& trace) {
  std::map<uint32_t, std::vector<Timeline>> by_window;
  for (const Process& process : trace.processes) {
    by_window[process.header.window()].push_back(make_timeline(trace, process));
  }
  std::vector<std::vector<Timeline>> out;
  for (auto& [window, timelines] : by_window) out.push_back(std::move(timelines));
  return out;
}

}  // namespace

Report make_report(const Trace& trace) {
  Report report;
  const std::vector<std::vector<Timeline>> windows = timelines_by_window(trace);
  std::set<int32_t> ranks;
  std::vector<Timeline> all;
  Judge judge;
  for (const std::vector<Timeline>& timelines : windows) {
    const RankComparison comparison = compare_ranks(timelines);
    for (const Timeline& timeline : timelines) {
      const Anatomy anatomy = dissect(timeline);
      const dump::Header& header = timeline.process->header;
      ranks.insert(header.rank());
      for (const StepAnatomy& step : anatomy.steps) {
        report.steps.push_back({header.rank(), header.window(), step});
      }
      for (size_t i = 0; i < kLossKinds; ++i) report.losses[i] += timeline.process->losses[i];
      report.own_cost_pct = std::max(report.own_cost_pct, own_cost(*timeline.process).percent);
    }
    judge.add_window(timelines, comparison);
    if (comparison.comparable) {
      report.speeds = comparison.speeds;
      report.stragglers_known = true;
    }
  }
  for (const std::vector<Timeline>& timelines : windows) {
    all.insert(all.end(), timelines.begin(), timelines.end());
  }
  report.ranks = ranks.size();
  report.step_time = step_time_of(report.steps);
  sum_up(report);
  report.tables = make_tables(all);
  report.findings = find(trace, report);
  judge.decide(report);
  return report;
}

}  // namespace gpuprof::analysis
