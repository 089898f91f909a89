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
  const CounterSeries* max_clock = nullptr;
};

// The user, or an administrator, has set a clock below the highest. Source: nvml.h.
constexpr uint64_t kClockSetting = 0x2;

bool is_throttled(uint64_t reasons) {
  return std::any_of(std::begin(kReasons), std::end(kReasons),
                     [reasons](const Reason& reason) { return reasons & reason.bit; });
}

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

// The clock that the GPU could have: the device's highest, unless it was told to have less. Else as
// samples without a reason show it. The highest clock of all samples is none, since each may be
// lowered. 0: not known.
uint64_t full_clock(const Samples& samples) {
  const auto& reasons = samples.reasons->points;
  const bool set = std::any_of(
      reasons.begin(), reasons.end(),
      [](const CounterSeries::Point& point) { return (point.value & kClockSetting) != 0; });
  if (samples.max_clock && !samples.max_clock->points.empty() && !set) {
    return samples.max_clock->points.front().value;
  }
  uint64_t highest = 0;
  for (const CounterSeries::Point& point : reasons) {
    if (!is_throttled(point.value)) {
      highest = std::max(highest, clock_at(*samples.clock, point.time));
    }
  }
  return highest;
}

}  // namespace

Throttle throttle_of(const Timeline& timeline) {
  std::map<uint32_t, Samples> devices;
  for (const CounterSeries& series : timeline.process->counters) {
    if (series.counter == Counter::throttle_reasons) devices[series.device].reasons = &series;
    if (series.counter == Counter::sm_clock) devices[series.device].clock = &series;
    if (series.counter == Counter::max_sm_clock) devices[series.device].max_clock = &series;
  }
  Throttle worst;
  for (const auto& [device, samples] : devices) {
    if (!samples.reasons || !samples.clock || samples.clock->points.empty()) continue;
    const uint64_t highest = full_clock(samples);
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
    if (throttled == 0) continue;
    const double mean = clocks / throttled;
    Throttle found;
    found.share_pct = 100 * throttled / static_cast<double>(samples.reasons->points.size());
    found.cost_known = highest > 0;
    const double lost = highest > 0 ? 1 - mean / static_cast<double>(highest) : 0;
    found.slower_pct = found.share_pct * std::max(0.0, lost);
    std::string why;
    for (const Reason& reason : kReasons) {
      if (seen & reason.bit) why += fmt::format("{}{}", why.empty() ? "" : ", ", reason.text);
    }
    found.text = fmt::format("GPU {}: clock lowered in {:.0f} % of samples ({}), {:.0f} MHz{}",
                             device, found.share_pct, why, mean,
                             highest > 0 ? fmt::format(" of {}", highest) : std::string());
    const bool unknown_cost = !found.cost_known && worst.text.empty();
    if (found.slower_pct > worst.slower_pct || unknown_cost) worst = found;
  }
  return worst;
}

}  // namespace gpuprof::analysis
