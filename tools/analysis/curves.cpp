// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/curves.h"

#include <algorithm>
#include <cmath>

#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"
#include "tools/analysis/walks.h"

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
    if (first == last) {
      sums_[first] += to - from;
      return;
    }
    for (size_t i = first; i <= last; ++i) {
      sums_[i] += std::max(
          0.0, std::min(to, static_cast<double>(i + 1)) - std::max(from, static_cast<double>(i)));
    }
  }

  std::vector<double> scaled(double factor) && {
    for (double& sum : sums_) sum *= factor;
    return std::move(sums_);
  }

 private:
  int64_t begin_, end_;
  double width_;
  std::vector<double> sums_;
};

Bins bins_of(const Timeline& timeline, size_t count) {
  return {timeline.steps.front().begin, timeline.steps.back().end, count};
}

}  // namespace

void add_utilization(const Timeline& timeline, Curves& out) {
  if (out.bin_us <= 0) return;
  Bins bins = bins_of(timeline, out.bins);
  Interval busy{0, 0};
  for (auto work = all_work(timeline); !work.at_end(); ++work) {
    if (work->begin == work->end) continue;
    if (work->begin > busy.end) {
      bins.add(busy.begin, busy.end);
      busy.begin = work->begin;
    }
    busy.end = std::max(busy.end, work->end);
  }
  bins.add(busy.begin, busy.end);
  out.utilization_pct = std::move(bins).scaled(100);
}

namespace {

// Of one stream, as time goes on.
struct Queue {
  StreamWalk begun;  // what has not begun yet
  Work next;         // the first of it
  bool any;          // there is one
  int64_t length = 0, most = 0, waited = 0;
  bool used = false;
};

}  // namespace

// Work counts from its call's begin to its own. Calls come in order of time, and with each what has
// begun by then.
void add_queues(const Timeline& timeline, Curves& out) {
  if (out.bin_us <= 0) return;
  Bins bins = bins_of(timeline, out.bins);
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  const auto counts = [&](int64_t issued) { return issued >= begin && issued < end; };
  std::vector<Queue> queues;
  for (uint32_t i = 0; i < timeline.streams.size(); ++i) {
    queues.push_back({StreamWalk(timeline, i), {}, false});
    queues.back().any = queues.back().begun.next(queues.back().next);
  }
  std::vector<Work> works;
  for (auto call = all_calls(timeline); !call.at_end(); ++call) {
    if (!counts(call->begin)) continue;
    timeline.works_of(*call, works);
    for (const Work& work : works) {
      Queue& queue = queues[work.stream];
      for (; queue.any && queue.next.begin <= call->begin;
           queue.any = queue.begun.next(queue.next)) {
        if (counts(timeline.call_begin_of(queue.next))) --queue.length;
      }
      queue.most = std::max(queue.most, ++queue.length);
      queue.waited += std::max<int64_t>(0, std::min(work.begin, end) - call->begin);
      queue.used = true;
      bins.add(call->begin, work.begin);
    }
  }
  for (size_t i = 0; i < queues.size(); ++i) {
    const Queue& queue = queues[i];
    if (!queue.used) continue;
    out.queues.push_back({timeline.streams[i].name, static_cast<uint64_t>(queue.most),
                          static_cast<double>(queue.waited) / static_cast<double>(end - begin)});
  }
  out.queue_length = std::move(bins).scaled(1);
}

namespace {

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
  const TensorCurve* found = nullptr;
  for (const TensorCurve& curve : curves.tensors) {
    if (!is_gpu_memory(curve.device_type)) continue;
    if (!found || curve.points.size() > found->points.size()) found = &curve;
  }
  return found;
}

}  // namespace

Curves empty_curves(const Timeline& timeline, size_t processes) {
  const dump::Header& header = timeline.process->header;
  Curves out{};
  out.rank = header.rank();
  out.window = header.window();
  out.begin_ns = timeline.process->window_begin;
  if (timeline.steps.empty()) return out;
  const int64_t begin = timeline.steps.front().begin, end = timeline.steps.back().end;
  out.begin_ns = begin;
  if (end <= begin) return out;
  out.bins = std::clamp(kBinsOfAll / std::max<size_t>(1, processes), kFewestBins, kMostBins);
  out.bin_us = static_cast<double>(end - begin) / static_cast<double>(out.bins) / 1000;
  return out;
}

void add_memory(const Timeline& timeline, Curves& out) {
  if (out.bin_us <= 0) return;
  const MemoryCurves memory = memory_curves(*timeline.trace, *timeline.process);
  out.device_memory = thinned(memory.device, out.begin_ns, out.bins);
  if (const TensorCurve* const tensors = largest(memory)) {
    out.tensor_memory = thinned(tensors->points, out.begin_ns, out.bins);
  }
}

}  // namespace gpuprof::analysis
