// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/host_waits.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/analysis/walks.h"

namespace gpuprof::analysis {

void HostWaits::add(const Timeline& timeline) {
  if (timeline.main_thread == kNone) return;
  for (const Step& step : timeline.steps) steps_ns_ += static_cast<double>(step.end - step.begin);
  Call call;
  for (ThreadWalk walk(timeline, timeline.main_thread); walk.next(call);) {
    const bool waits = call.kind == CallClass::synchronize || call.blocking;
    if (waits && timeline.step_at(call.begin)) {
      waits_ns_ += static_cast<double>(call.end - call.begin);
    }
  }
}

double HostWaits::percent() const {
  return steps_ns_ > 0 ? std::min(100.0, 100 * waits_ns_ / steps_ns_) : 0;
}

std::string HostWaits::what_else_limits() const {
  constexpr double kMostlyPct = 50;
  if (percent() < kMostlyPct) {
    return "by the replay something else takes as long as the GPU, most likely the host";
  }
  return fmt::format(
      "in the replay no other work waits for it. The host waits for the GPU for {:.0f} % of the "
      "time, so it is not the limit: what other work waits for is not recorded, and this may cost "
      "up "
      "to its share",
      percent());
}

}  // namespace gpuprof::analysis
