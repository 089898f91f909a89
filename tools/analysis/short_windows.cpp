// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/short_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tools/analysis/statistics.h"
#include "tools/analysis/walks.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

// Of a key of the schedule, as the dump's header has it: "wait=0,max_s=2"; below 0: it has none.
double value_of(std::string_view schedule, const std::string& key) {
  const std::string text = "," + std::string(schedule);
  const size_t at = text.find("," + key + "=");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + key.size() + 2, nullptr);
}

}  // namespace

std::optional<ShortWindow> short_window(const Process& process) {
  constexpr double kSteps = 3, kRoom = 1.1;  // that are asked for, and what they may take longer
  const std::string& limit = process.summary.end_reason();
  if (limit != "max_s" && limit != "max_mb") return std::nullopt;
  if (process.steps.empty() || process.window_steps().size() >= 2 || is_bracketed(process)) {
    return std::nullopt;
  }
  std::vector<double> lengths;
  for (const Step& step : process.steps) {
    lengths.push_back(static_cast<double>(step.end - step.begin));
  }
  const double middle = quantile(lengths, 0.5);
  const auto window = static_cast<double>(process.window_end - process.window_begin);
  if (2 * middle <= window) return std::nullopt;
  const double value = value_of(process.header.schedule(), limit);
  ShortWindow out;
  out.why = fmt::format("{}{} ended the window, where a step takes {}", limit,
                        value > 0 ? fmt::format("={:g}", value) : "", format_us(middle / 1000));
  const double longest = *std::max_element(lengths.begin(), lengths.end());
  const double enough = std::ceil(kRoom * kSteps * longest / window * std::max(value, 0.0));
  out.what =
      fmt::format("a longer window (GPUPROF_SCHEDULE=active={:g},{}={:g})", kSteps, limit, enough);
  return out;
}

}  // namespace gpuprof::analysis
