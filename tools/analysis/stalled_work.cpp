// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/stalled_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/analysis/walks.h"

namespace gpuprof::analysis {

void StalledWork::add(const Timeline& timeline, const Intervals& idle) {
  for (const Interval& each : idle) idle_us_ += static_cast<double>(each.end - each.begin) / 1000;
  if (timeline.main_thread == kNone || idle.empty()) return;
  Call call;
  for (ThreadWalk walk(timeline, timeline.main_thread); walk.next(call);) {
    auto at = std::partition_point(idle.begin(), idle.end(),
                                   [&](const Interval& each) { return each.end <= call.begin; });
    int64_t inside = 0;
    for (; at != idle.end() && at->begin < call.end; ++at) {
      inside += std::min(at->end, call.end) - std::max(at->begin, call.begin);
    }
    if (inside <= 0) continue;
    const std::string name(timeline.trace->text(timeline.shape(call.event).name));
    calls_us_[name] += static_cast<double>(inside) / 1000;
  }
}

void StalledWork::report(Report& report) const {
  const double least = finding_row(FindingKind::stalled_work).limit.value;
  if (report.device_idle_pct < least || idle_us_ <= 0) return;
  const auto most =
      std::max_element(calls_us_.begin(), calls_us_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string meanwhile;
  if (most != calls_us_.end() && most->second > idle_us_ / 10) {
    meanwhile = fmt::format(". For {:.0f} % of that the main thread is in {}",
                            std::min(100.0, 100 * most->second / idle_us_), most->first);
  }
  add_finding<FindingKind::stalled_work>(report.findings, report.device_idle_pct,
                                         report.device_idle_pct, report.unit(), meanwhile);
}

}  // namespace gpuprof::analysis
