// SPDX-License-Identifier: Apache-2.0
#include "formats/trace_windows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace gpuprof {
namespace {

// Of one process, or what those of several processes have in common.
struct Window {
  int64_t begin, end;  // of several processes the first one's: clocks of others may differ
  std::set<uint64_t> steps;
  std::set<std::string_view> paths;
  std::vector<Process*> traces;
};

using Windows = std::vector<Window>;  // none overlaps the next

// How much two windows are one: a file of both says most, then steps. A host's clock may be off by
// more than lies between windows, so that time counts less.
constexpr double kSameFile = 8, kSameSteps = 4, kSameTime = 1;
constexpr double kNothingAgainst = 1e-6;

double shared_time(const Window& a, const Window& b) {
  const int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  const int64_t shorter = std::min(a.end - a.begin, b.end - b.begin);
  if (shorter <= 0) return begin <= end ? 1 : 0;
  return end > begin ? static_cast<double>(end - begin) / static_cast<double>(shorter) : 0;
}

double shared_steps(const Window& a, const Window& b) {
  if (a.steps.empty() || b.steps.empty()) return 0;
  const auto [few, many] = a.steps.size() < b.steps.size() ? std::pair(&a.steps, &b.steps)
                                                           : std::pair(&b.steps, &a.steps);
  const auto both =
      std::count_if(few->begin(), few->end(), [&](uint64_t step) { return many->contains(step); });
  return static_cast<double>(both) / static_cast<double>(few->size());
}

bool share_a_file(const Window& a, const Window& b) {
  return std::any_of(a.paths.begin(), a.paths.end(),
                     [&](std::string_view path) { return b.paths.contains(path); });
}

// A process's windows beside those that are known of other processes.
class Alignment {
 public:
  Alignment(const Windows& own, const Windows& known) : own_(own), known_(known) {
    for (const Window& a : own) {
      for (const Window& b : known) {
        steps_tell_ = steps_tell_ || shared_steps(a, b) > 0;
        times_tell_ = times_tell_ || shared_time(a, b) > 0;
      }
    }
  }

  // The known window that each own one is, in growing order: those that are most alike together.
  std::vector<std::optional<size_t>> find() const {
    const size_t rows = own_.size(), columns = known_.size();
    std::vector<std::vector<double>> alike(rows, std::vector<double>(columns));
    std::vector<std::vector<double>> best(rows + 1, std::vector<double>(columns + 1));  // from here
    for (size_t i = rows; i-- > 0;) {
      for (size_t j = columns; j-- > 0;) {
        alike[i][j] = likeness(own_[i], known_[j]);
        best[i][j] = std::max(best[i + 1][j], best[i][j + 1]);
        if (alike[i][j] > 0) best[i][j] = std::max(best[i][j], alike[i][j] + best[i + 1][j + 1]);
      }
    }
    std::vector<std::optional<size_t>> out(rows);
    for (size_t i = 0, j = 0; i < rows && j < columns;) {
      if (alike[i][j] > 0 && best[i][j] == alike[i][j] + best[i + 1][j + 1]) {
        out[i++] = j++;
      } else {
        best[i][j] == best[i][j + 1] ? ++j : ++i;
      }
    }
    return out;
  }

 private:
  // 0: they are not one.
  double likeness(const Window& a, const Window& b) const {
    const double steps = shared_steps(a, b), time = shared_time(a, b);
    const bool both_have_steps = !a.steps.empty() && !b.steps.empty();
    if (share_a_file(a, b)) return kSameFile + kSameSteps * steps + kSameTime * time;
    if (both_have_steps && steps_tell_ && steps == 0) return 0;
    if (steps > 0 || time > 0) return kSameSteps * steps + kSameTime * time;
    return both_have_steps || times_tell_ ? 0 : kNothingAgainst;
  }

  const Windows& own_;
  const Windows& known_;
  bool steps_tell_ = false, times_tell_ = false;  // of some of the windows
};

void add(Window own, Window& known) {
  known.steps.merge(own.steps);
  known.paths.merge(own.paths);
  known.traces.insert(known.traces.end(), own.traces.begin(), own.traces.end());
}

// Windows that no other process has go where the times say, between those around them.
void add(Windows own, Windows& known) {
  const auto found = Alignment(own, known).find();
  size_t at = 0, added = 0;  // of `known`
  for (size_t i = 0; i < own.size(); ++i) {
    if (found[i]) {
      at = *found[i] + added;
      add(std::move(own[i]), known[at++]);
      continue;
    }
    const auto next =
        std::find_if(found.begin() + static_cast<ptrdiff_t>(i), found.end(),
                     [](const std::optional<size_t>& each) { return each.has_value(); });
    const size_t end = next == found.end() ? known.size() : **next + added;
    while (at < end && known[at].begin <= own[i].begin) ++at;
    known.insert(known.begin() + static_cast<ptrdiff_t>(at++), std::move(own[i]));
    ++added;
  }
}

Windows windows_of(std::vector<Process*> traces) {
  std::stable_sort(traces.begin(), traces.end(), [](const Process* a, const Process* b) {
    return a->window_begin < b->window_begin;
  });
  Windows out;
  for (Process* const process : traces) {
    if (out.empty() || process->window_begin >= out.back().end) {
      out.push_back({process->window_begin, process->window_end, {}, {}, {}});
    }
    Window& window = out.back();
    window.end = std::max(window.end, process->window_end);
    for (const Step& step : process->window_steps()) window.steps.insert(step.step);
    window.paths.insert(process->path);
    window.traces.push_back(process);
  }
  return out;
}

}  // namespace

void number_windows(Trace& trace) {
  std::map<std::tuple<int32_t, std::string, uint32_t>, std::vector<Process*>> traces;
  for (Process& process : trace.processes) {
    const dump::Header& h = process.header;
    if (process.source == Source::kineto && h.window() == 0) {
      traces[{h.rank(), h.host(), h.pid()}].push_back(&process);
    }
  }
  std::vector<Windows> processes;
  for (auto& [key, own] : traces) processes.push_back(windows_of(std::move(own)));
  // Who has the most lacks the least.
  std::stable_sort(processes.begin(), processes.end(),
                   [](const Windows& a, const Windows& b) { return a.size() > b.size(); });
  Windows known;
  for (Windows& own : processes) add(std::move(own), known);
  for (size_t number = 0; number < known.size(); ++number) {
    for (Process* const process : known[number].traces) {
      process->header.set_window(static_cast<uint32_t>(number));
    }
  }
}

}  // namespace gpuprof
