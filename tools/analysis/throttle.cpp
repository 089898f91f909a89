// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/throttle.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

Throttle throttle_of(const Timeline& timeline) {
  std::map<uint32_t, Samples> devices;
  for (const CounterSeries& series : timeline.process->counters) {
    if (series.counter == Counter::throttle_reasons) devices[series.device].reasons = &series;
    if (series.counter == Counter::sm_clock) devices[series.device].clock = &series;
  }
  Throttle worst;
  for (const auto& [device, samples] : devices) {
    if (!samples.reasons || samples.reasons->points.empty() || !samples.clock) continue;
    uint64_t seen = 0, throttled = 0;
    for (const CounterSeries::Point& point : samples.reasons->points) {
      uint64_t found = 0;
      for (const Reason& reason : kReasons) found |= point.value & reason.bit;
      throttled += found != 0;
      seen |= found;
    }
    if (!throttled) continue;
    uint64_t highest = 0;
    double sum = 0;
    for (const CounterSeries::Point& point : samples.clock->points) {
      highest = std::max(highest, point.value);
      sum += static_cast<double>(point.value);
    }
    if (!highest) continue;
    const double mean = sum / static_cast<double>(samples.clock->points.size());
    Throttle found;
    found.share_pct = 100.0 * static_cast<double>(throttled) /
                      static_cast<double>(samples.reasons->points.size());
    found.slower_pct = 100 * (1 - mean / static_cast<double>(highest));
    std::string why;
    for (const Reason& reason : kReasons) {
      if (seen & reason.bit) why += fmt::format("{}{}", why.empty() ? "" : ", ", reason.text);
    }
    found.text = fmt::format("GPU {}: clock lowered in {:.0f} % of samples ({}), {:.0f} MHz of {}",
                             device, found.share_pct, why, mean, highest);
    if (found.share_pct > worst.share_pct) worst = found;
  }
  return worst;
}

}  // namespace gpuprof::analysis
