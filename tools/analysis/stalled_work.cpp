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
  constexpr double kWorthSayingPct = 10;
  if (report.device_idle_pct < kWorthSayingPct || idle_us_ <= 0) return;
  const auto most =
      std::max_element(calls_us_.begin(), calls_us_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string meanwhile;
  if (most != calls_us_.end() && most->second > idle_us_ / 10) {
    meanwhile = fmt::format(". For {:.0f} % of that the main thread is in {}",
                            std::min(100.0, 100 * most->second / idle_us_), most->first);
  }
  report.findings.push_back(
      {"stalled_work",
       fmt::format("for {:.1f} % of {} time no GPU works although work was issued: it waits for "
                   "what is not recorded (the host inside a graph, an event of another stream or "
                   "process), and no cause has that time{}",
                   report.device_idle_pct, report.unit(), meanwhile),
       report.device_idle_pct});
}

}  // namespace gpuprof::analysis
