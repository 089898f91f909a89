// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/line_times.h"

#include <fmt/format.h>

namespace gpuprof::analysis {

std::string CodeLine::place() const {
  if (line == 0) return file.empty() ? function : fmt::format("{} ({})", function, file);
  return fmt::format("{}:{} {}", file.substr(file.rfind('/') + 1), line, function);
}

void WithinTimes::add(std::span<const std::string> functions, double us) {
  for (auto function = functions.begin(); function != functions.end(); ++function) {
    if (std::find(functions.begin(), function, *function) != function) continue;
    const auto known = std::find_if(times_.begin(), times_.end(),
                                    [&](const auto& entry) { return entry.first == *function; });
    if (known == times_.end()) {
      times_.emplace_back(*function, us);
    } else {
      known->second += us;
    }
  }
}

// A caller has at least its callee's time, and came later.
std::string WithinTimes::mostly(double total) const {
  const std::pair<std::string, double>* found = nullptr;
  for (const auto& entry : times_) {
    if (entry.second >= total / 2 && (!found || entry.second < found->second)) found = &entry;
  }
  return found ? found->first : "";
}

}  // namespace gpuprof::analysis
