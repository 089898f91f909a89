// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/gpu_shares.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

// What of the steps lies in the union of intervals that come in order of begin. There may be time
// between steps.
class Cover {
 public:
  explicit Cover(const std::vector<Step>& steps) : steps_(&steps), until_(steps.front().begin) {}

  void add(int64_t begin, int64_t end) {
    begin = std::max(begin, until_);
    if (begin >= end) return;
    until_ = end;
    while (at_ < steps_->size() && (*steps_)[at_].end <= begin) ++at_;
    for (size_t i = at_; i < steps_->size() && (*steps_)[i].begin < end; ++i) {
      const Step& step = (*steps_)[i];
      total_ += std::min(end, step.end) - std::max(begin, step.begin);
    }
  }
  int64_t total() const { return total_; }

 private:
  const std::vector<Step>* steps_;
  int64_t until_, total_ = 0;
  size_t at_ = 0;
};

}  // namespace

GpuShares gpu_shares_of(const Timeline& timeline) {
  const std::vector<Step>& steps = timeline.steps;
  Cover any(steps);
  std::map<uint32_t, Cover> gpus;
  for (auto work = all_work(timeline); !work.at_end(); ++work) {
    if (work->begin >= steps.back().end) break;
    any.add(work->begin, work->end);
    const uint32_t device = timeline.streams[work->stream].name.device;
    gpus.try_emplace(device, steps).first->second.add(work->begin, work->end);
  }
  int64_t whole = 0;
  for (const Step& step : steps) whole += step.end - step.begin;
  std::erase_if(gpus, [](const auto& gpu) { return gpu.second.total() == 0; });
  GpuShares out{gpus.size()};
  if (whole <= 0) return out;
  const auto percent = [&](const Cover& cover) {
    return 100 * static_cast<double>(cover.total()) / static_cast<double>(whole);
  };
  out.any_pct = percent(any);
  for (const auto& [device, cover] : gpus) {
    if (any.total() > 0) {
      out.at_once += static_cast<double>(cover.total()) / static_cast<double>(any.total());
    }
    out.busiest_pct = std::max(out.busiest_pct, percent(cover));
  }
  return out;
}

StreamShares stream_shares_of(const Timeline& timeline) {
  struct Stream {
    int64_t until = INT64_MIN, computes = 0, all = 0;
  };
  std::vector<Stream> streams(timeline.streams.size());
  each_work_of_steps(timeline, [&](const Work& work) {
    Stream& stream = streams[work.stream];
    const int64_t begin = std::max(work.begin, stream.until);  // nodes of a graph may overlap
    if (begin >= work.end) return;
    stream.until = work.end;
    stream.all += work.end - begin;
    if (work.kind == WorkClass::compute) stream.computes += work.end - begin;
  });
  StreamShares out;
  for (const Stream& stream : streams) {
    out.working += stream.all > 0;
    out.computes_ns = std::max(out.computes_ns, static_cast<double>(stream.computes));
  }
  return out;
}

}  // namespace gpuprof::analysis
