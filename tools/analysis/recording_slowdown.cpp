// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/recording_slowdown.h"

#include <algorithm>
#include <span>
#include <vector>

#include "formats/core/early_window.h"
#include "formats/core/settings.h"
#include "tools/analysis/statistics.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kLeast = 5, kMostBefore = 20;
constexpr size_t kProgramStart = 3;  // steps in which a program loads and compiles what it needs
constexpr size_t kAfterWindow = 2;   // steps in which the window before may still be written

// The steps before the window that nothing was recorded of, without its warm-up.
std::span<const Step> steps_before(const Process& process, std::span<const Step> window) {
  ScheduleSpec schedule;
  SettingError error;
  if (!parse_schedule(process.header.schedule(), schedule, error) || schedule.all) return {};
  const std::span<const Step> log(process.steps);
  const auto first = static_cast<size_t>(window.data() - log.data());
  const bool cycles = process.header.window() > 0;
  const size_t free_steps = cycles ? schedule.wait : first;
  const size_t unlike = cycles ? kAfterWindow : kProgramStart;
  if (first < schedule.warmup || first - schedule.warmup < unlike || free_steps <= unlike)
    return {};
  const size_t end = first - schedule.warmup;
  const size_t count = std::min({end - unlike, free_steps - unlike, kMostBefore});
  return log.subspan(end - count, count);
}

}  // namespace

std::optional<RecordingSlowdown> recording_slowdown(const Process& process) {
  if (process.source != Source::dump || !process.has_header || is_bracketed(process)) return {};
  if (is_early_window(process.header.window())) return {};
  const std::span<const Step> window = process.window_steps();
  if (window.size() < kLeast + 2) return {};
  const std::vector<double> before = lengths_us(steps_before(process, window));
  if (before.size() < kLeast) return {};
  const std::vector<double> during = lengths_us(window.subspan(1, window.size() - 2));
  if (quantile(before, 0.75) >= quantile(during, 0.25)) return {};
  const RecordingSlowdown out{before.size(), quantile(before, 0.5), quantile(during, 0.5)};
  if (out.before_us <= 0) return {};
  return out;
}

}  // namespace gpuprof::analysis
