// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/thread_times.h"

#include <algorithm>

namespace gpuprof {

std::vector<std::optional<ThreadShares>> shares_of(const ThreadTimes& times) {
  const std::vector<ThreadTimes::Point>& points = times.points;
  std::vector<std::optional<ThreadShares>> out(points.empty() ? 0 : points.size() - 1);
  double late_running = 0, late_waiting = 0;  // ns that the stretch behind had too much
  for (size_t i = out.size(); i-- > 0;) {
    const ThreadTimes::Point &before = points[i], &now = points[i + 1];
    if (now.time <= before.time || now.running_ns < before.running_ns ||
        now.waiting_ns < before.waiting_ns) {
      late_running = late_waiting = 0;
      continue;
    }
    const auto length = static_cast<double>(now.time - before.time);
    double running = static_cast<double>(now.running_ns - before.running_ns) + late_running;
    double waiting = static_cast<double>(now.waiting_ns - before.waiting_ns) + late_waiting;
    late_waiting = std::clamp(running + waiting - length, 0.0, waiting);
    waiting -= late_waiting;
    late_running = std::max(0.0, running + waiting - length);
    running -= late_running;
    out[i] = ThreadShares{running / length, waiting / length};
  }
  return out;
}

}  // namespace gpuprof
