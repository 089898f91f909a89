// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/throttle.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace gpuprof::analysis {
namespace {

// nvmlClocksThrottleReasons that take speed from running work; not GpuIdle, the user's own
// settings, or the display's. Source: nvml.h.
struct Reason {
  uint64_t bit;
  const char* text;
};
constexpr Reason kReasons[] = {{0x4, "power cap"},
                               {0x8, "hardware slowdown"},
                               {0x20, "temperature (software)"},
                               {0x40, "temperature (hardware)"},
                               {0x80, "power brake"}};

struct Samples {
  const CounterSeries* reasons = nullptr;
  const CounterSeries* clock = nullptr;
};

// The clock nearest in time: the two are read one after the other.
uint64_t clock_at(const CounterSeries& clock, int64_t time) {
  const auto after =
      std::lower_bound(clock.points.begin(), clock.points.end(), time,
                       [](const CounterSeries::Point& point, int64_t t) { return point.time < t; });
  if (after == clock.points.begin()) return after->value;
  const auto before = std::prev(after);
  const bool later = after != clock.points.end() && after->time - time < time - before->time;
  return later ? after->value : before->value;
}

}  // namespace

Throttle throttle_of(const Timeline& timeline) {
  std::map<uint32_t, Samples> devices;
  for (const CounterSeries& series : timeline.process->counters) {
    if (series.counter == Counter::throttle_reasons) devices[series.device].reasons = &series;
    if (series.counter == Counter::sm_clock) devices[series.device].clock = &series;
  }
  Throttle worst;
  for (const auto& [device, samples] : devices) {
    if (!samples.reasons || !samples.clock || samples.clock->points.empty()) continue;
    uint64_t highest = 0;
    for (const CounterSeries::Point& point : samples.clock->points) {
      highest = std::max(highest, point.value);
    }
    uint64_t seen = 0;
    double throttled = 0, clocks = 0;
    for (const CounterSeries::Point& point : samples.reasons->points) {
      uint64_t found = 0;
      for (const Reason& reason : kReasons) found |= point.value & reason.bit;
      if (!found) continue;
      seen |= found;
      ++throttled;
      clocks += static_cast<double>(clock_at(*samples.clock, point.time));
    }
    if (throttled == 0 || highest == 0) continue;
    const double mean = clocks / throttled;
    Throttle found;
    found.share_pct = 100 * throttled / static_cast<double>(samples.reasons->points.size());
    found.slower_pct = found.share_pct * (1 - mean / static_cast<double>(highest));
    std::string why;
    for (const Reason& reason : kReasons) {
      if (seen & reason.bit) why += fmt::format("{}{}", why.empty() ? "" : ", ", reason.text);
    }
    found.text = fmt::format("GPU {}: clock lowered in {:.0f} % of samples ({}), {:.0f} MHz of {}",
                             device, found.share_pct, why, mean, highest);
    if (found.slower_pct > worst.slower_pct) worst = found;
  }
  return worst;
}

}  // namespace gpuprof::analysis
