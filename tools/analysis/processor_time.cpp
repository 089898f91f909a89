// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/processor_time.h"

#include <algorithm>
#include <cmath>

namespace gpuprof::analysis {
namespace {

using Point = CounterSeries::Point;

auto first_after(std::span<const Point> points, int64_t time) {
  return std::partition_point(points.begin(), points.end(),
                              [time](const Point& each) { return each.time <= time; });
}

}  // namespace

ProcessorTime::ProcessorTime(const Process& process, uint32_t thread_id) {
  for (const ProcessorWaits& each : process.processor_waits) {
    const bool in_order =
        std::is_sorted(each.points.begin(), each.points.end(), [](const Point& a, const Point& b) {
          return a.time < b.time || (a.time == b.time && a.value < b.value);
        });
    if (each.thread == thread_id && in_order) points_ = each.points;
  }
}

double ProcessorTime::at(int64_t time) const {
  if (points_.empty() || time <= points_.front().time) return 0;
  const auto since_first = [&](const Point& point) {
    return static_cast<double>(point.value) - static_cast<double>(points_.front().value);
  };
  const auto after = first_after(points_, time);
  const Point& before = *(after - 1);
  if (after == points_.end()) return since_first(before);
  const double part = static_cast<double>(time - before.time) /
                      static_cast<double>(std::max<int64_t>(1, after->time - before.time));
  return since_first(before) + part * (since_first(*after) - since_first(before));
}

int64_t ProcessorTime::waited(int64_t begin, int64_t end) const {
  if (!known() || begin >= end) return 0;
  return std::clamp<int64_t>(std::llround(at(end) - at(begin)), 0, end - begin);
}

int64_t ProcessorTime::reading_before(int64_t time) const {
  const auto after = first_after(points_, time);
  return after == points_.begin() || after == points_.end() ? time : (after - 1)->time;
}

}  // namespace gpuprof::analysis
