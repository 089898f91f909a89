// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/thread_states.h"

#include <algorithm>

#include "formats/trace/thread_times.h"

namespace gpuprof::analysis {
namespace {

std::string name_of(const Process& process, uint32_t thread) {
  for (const Lane& lane : process.lanes) {
    if (lane.type == LaneType::thread && lane.thread_id == thread) return lane.thread_name;
  }
  return {};
}

// False: no reading lies in the steps.
bool sum_up(const ThreadTimes& times, int64_t begin, int64_t end, ThreadStates& out) {
  double covered = 0, running = 0, waiting = 0;
  const auto shares = shares_of(times);
  for (size_t i = 0; i < shares.size(); ++i) {
    const int64_t inside =
        std::min(times.points[i + 1].time, end) - std::max(times.points[i].time, begin);
    if (!shares[i] || inside <= 0) continue;
    covered += static_cast<double>(inside);
    running += static_cast<double>(inside) * shares[i]->running;
    waiting += static_cast<double>(inside) * shares[i]->waiting;
  }
  if (covered <= 0) return false;
  out.running_pct = 100 * running / covered;
  out.waiting_pct = 100 * waiting / covered;
  out.asleep_pct = 100 - out.running_pct - out.waiting_pct;
  out.covered_pct = 100 * covered / static_cast<double>(end - begin);
  return true;
}

}  // namespace

std::vector<ThreadStates> thread_states(std::span<const Timeline> timelines) {
  std::vector<ThreadStates> out;
  for (const Timeline& timeline : timelines) {
    if (timeline.steps.empty()) continue;
    const Process& process = *timeline.process;
    const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
    if (begin >= end) continue;
    const size_t first = out.size();
    for (const ThreadTimes& times : process.thread_times) {
      ThreadStates row;
      row.rank = process.header.rank();
      row.thread = times.thread;
      row.name = name_of(process, times.thread);
      row.steps = timeline.main_thread != kNone &&
                  timeline.threads[timeline.main_thread].id == times.thread;
      if (sum_up(times, begin, end, row)) out.push_back(std::move(row));
    }
    std::stable_partition(out.begin() + static_cast<ptrdiff_t>(first), out.end(),
                          [](const ThreadStates& row) { return row.steps; });
  }
  return out;
}

}  // namespace gpuprof::analysis
