// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/gpu_shares.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// The union of intervals that come in order of begin.
struct Cover {
  int64_t until, total = 0;
  void add(int64_t begin, int64_t end) {
    begin = std::max(begin, until);
    if (begin >= end) return;
    total += end - begin;
    until = end;
  }
};

}  // namespace

GpuShares gpu_shares_of(const Timeline& timeline) {
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  Cover any{begin};
  std::map<uint32_t, Cover> gpus;
  for (auto work = all_work(timeline); !work.at_end(); ++work) {
    if (work->begin >= end) break;
    const int64_t work_end = std::min(work->end, end);
    if (work_end <= begin) continue;
    any.add(work->begin, work_end);
    const uint32_t device = timeline.streams[work->stream].name.device;
    gpus.try_emplace(device, Cover{begin}).first->second.add(work->begin, work_end);
  }
  GpuShares out{gpus.size()};
  if (end <= begin) return out;
  const auto percent = [&](const Cover& cover) {
    return 100 * static_cast<double>(cover.total) / static_cast<double>(end - begin);
  };
  out.any_pct = percent(any);
  for (const auto& [device, cover] : gpus) {
    out.busiest_pct = std::max(out.busiest_pct, percent(cover));
  }
  return out;
}

}  // namespace gpuprof::analysis
