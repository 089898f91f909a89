// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/curves.h"

#include <algorithm>
#include <cmath>

#include "formats/slices.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kMostBins = 400, kFewestBins = 32, kBinsOfAll = 16'000;

// What adds up in bins of equal length.
class Bins {
 public:
  Bins(int64_t begin, int64_t end, size_t count)
      : begin_(begin),
        end_(end),
        width_(static_cast<double>(end - begin) / static_cast<double>(count)),
        sums_(count, 0.0) {}

  // A stretch of the level 1.
  void add(int64_t begin, int64_t end) {
    begin = std::max(begin, begin_);
    end = std::min(end, end_);
    if (begin >= end) return;
    const double from = static_cast<double>(begin - begin_) / width_;
    const double to = static_cast<double>(end - begin_) / width_;
    const size_t first = std::min(static_cast<size_t>(from), sums_.size() - 1);
    const size_t last = std::min(static_cast<size_t>(to), sums_.size() - 1);
    for (size_t i = first; i <= last; ++i) {
      sums_[i] += std::max(
          0.0, std::min(to, static_cast<double>(i + 1)) - std::max(from, static_cast<double>(i)));
    }
  }

  double width_ns() const { return width_; }
  std::vector<double> scaled(double factor) && {
    for (double& sum : sums_) sum *= factor;
    return std::move(sums_);
  }

 private:
  int64_t begin_, end_;
  double width_;
  std::vector<double> sums_;
};

std::vector<double> utilization(const Timeline& timeline, Bins bins) {
  std::vector<Interval> busy;
  busy.reserve(timeline.works.size());
  for (const Work& work : timeline.works) busy.push_back({work.begin, work.end});
  for (const Interval& each : cover(std::move(busy))) bins.add(each.begin, each.end);
  return std::move(bins).scaled(100);
}

// Work counts from its call's begin to its own.
void measure_queues(const Timeline& timeline, Bins bins, Curves& out) {
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  std::vector<std::vector<std::pair<int64_t, int>>> changes(timeline.streams.size());
  std::vector<int64_t> waited(timeline.streams.size(), 0);
  for (const Work& work : timeline.works) {
    if (work.call == kNone) continue;
    const int64_t issued = timeline.calls[work.call].begin;
    if (issued < begin || issued >= end) continue;
    changes[work.stream].emplace_back(issued, 1);
    changes[work.stream].emplace_back(work.begin, -1);
    bins.add(issued, work.begin);
    waited[work.stream] += std::max<int64_t>(0, std::min(work.begin, end) - issued);
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].empty()) continue;
    std::sort(changes[i].begin(), changes[i].end());
    int64_t level = 0, most = 0;
    for (const auto& [time, change] : changes[i]) most = std::max(most, level += change);
    out.queues.push_back({timeline.streams[i], static_cast<uint64_t>(most),
                          static_cast<double>(waited[i]) / static_cast<double>(end - begin)});
  }
  out.queue_length = std::move(bins).scaled(1);
}

// The highest point of each of `count` stretches, and the last one.
std::vector<MemorySample> thinned(const std::vector<MemoryPoint>& points, int64_t begin,
                                  size_t count) {
  std::vector<MemorySample> out;
  const auto sample = [begin](const MemoryPoint& point) {
    return MemorySample{static_cast<double>(point.time - begin) / 1000, point.total};
  };
  const size_t stretch = std::max<size_t>(1, (points.size() + count - 1) / count);
  for (size_t i = 0; i < points.size(); i += stretch) {
    const auto from = points.begin() + static_cast<int64_t>(i);
    const auto to = points.begin() + static_cast<int64_t>(std::min(points.size(), i + stretch));
    out.push_back(sample(*std::max_element(
        from, to, [](const MemoryPoint& a, const MemoryPoint& b) { return a.total < b.total; })));
  }
  if (stretch > 1) out.push_back(sample(points.back()));
  return out;
}

// Of the GPU whose allocator holds most.
const TensorCurve* largest(const MemoryCurves& curves) {
  constexpr uint32_t kCuda = 1;
  const TensorCurve* found = nullptr;
  for (const TensorCurve& curve : curves.tensors) {
    if (curve.device_type != kCuda) continue;
    if (!found || curve.points.size() > found->points.size()) found = &curve;
  }
  return found;
}

}  // namespace

Curves make_curves(const Timeline& timeline, size_t processes) {
  const dump::Header& header = timeline.process->header;
  Curves out{header.rank(), header.window(), timeline.process->window_begin, 0, {}, {}, {}, {}, {}};
  if (timeline.steps.empty()) return out;
  const size_t bins =
      std::clamp(kBinsOfAll / std::max<size_t>(1, processes), kFewestBins, kMostBins);
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  out.begin_ns = begin;
  if (end <= begin) return out;
  const Bins empty(begin, end, bins);
  out.bin_us = empty.width_ns() / 1000;
  out.utilization_pct = utilization(timeline, empty);
  measure_queues(timeline, empty, out);
  const MemoryCurves memory = memory_curves(*timeline.trace, *timeline.process);
  out.device_memory = thinned(memory.device, begin, bins);
  if (const TensorCurve* const tensors = largest(memory)) {
    out.tensor_memory = thinned(tensors->points, begin, bins);
  }
  return out;
}

}  // namespace gpuprof::analysis
