// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/line_times.h"

#include <fmt/format.h>

#include <iterator>
#include <set>

namespace gpuprof::analysis {

std::string CodeLine::place() const {
  if (line == 0) return file.empty() ? function : fmt::format("{} ({})", function, file);
  return fmt::format("{}:{} {}", file.substr(file.rfind('/') + 1), line, function);
}

std::string CodeLine::calls() const {
  std::string in;
  for (const Part& part : parts) {
    in += fmt::format("{}{} {:.0f} %", in.empty() ? "" : ", ", part.function, part.pct);
  }
  if (within.empty()) return in.empty() ? in : "in " + in;
  return in.empty() ? "in " + within : fmt::format("in {} ({})", within, in);
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
  static const std::string kLine;
  std::set<std::pair<std::string, std::string>> seen;
  for (auto function = functions.begin(); function != functions.end(); ++function) {
    const auto caller = std::next(function);
    const std::pair call(caller == functions.end() ? kLine : *caller, *function);
    if (call.first != call.second && seen.insert(call).second) calls_[call] += us;
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

std::vector<CodeLine::Part> WithinTimes::called_by(const std::string& function,
                                                   double total) const {
  constexpr double kLeastPct = 10;
  constexpr size_t kMost = 3;
  std::vector<CodeLine::Part> out;
  for (auto call = calls_.lower_bound({function, ""});
       call != calls_.end() && call->first.first == function; ++call) {
    const double pct = total > 0 ? 100 * call->second / total : 0;
    if (pct >= kLeastPct) out.push_back({call->first.second, pct});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CodeLine::Part& a, const CodeLine::Part& b) { return a.pct > b.pct; });
  if (out.size() > kMost) out.resize(kMost);
  return out;
}

}  // namespace gpuprof::analysis
