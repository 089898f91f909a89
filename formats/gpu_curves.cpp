// SPDX-License-Identifier: Apache-2.0
#include "formats/gpu_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>

#include "formats/slices.h"

namespace gpuprof {
namespace {

constexpr int64_t kShortestNs = 10'000;

// Equal intervals over the time in which a process had GPU work.
class Intervals {
 public:
  Intervals(int64_t begin, int64_t end)
      : begin_(begin),
        width_(std::max(kShortestNs, (end - begin) / kCurveIntervals + 1)),
        count_(static_cast<size_t>((end - begin) / width_) + 1) {}

  size_t count() const { return count_; }
  int64_t width() const { return width_; }
  int64_t begin_of(size_t interval) const {
    return begin_ + static_cast<int64_t>(interval) * width_;
  }
  size_t at(int64_t time) const {
    return std::min(static_cast<size_t>(std::max<int64_t>(time - begin_, 0) / width_), count_ - 1);
  }

  // Adds `amount` per ns to each interval for the part of [begin, end) that lies in it.
  void spread(std::vector<double>& sums, int64_t begin, int64_t end, double amount) const {
    for (size_t i = at(begin); i < count_ && begin_of(i) < end; ++i) {
      const int64_t from = std::max(begin, begin_of(i)), to = std::min(end, begin_of(i + 1));
      if (to > from) sums[i] += static_cast<double>(to - from) * amount;
    }
  }

  std::vector<GpuCurve::Point> points(const std::vector<double>& values) const {
    std::vector<GpuCurve::Point> out;
    for (size_t i = 0; i < count_; ++i) {
      if (out.empty() || out.back().value != values[i]) out.push_back({begin_of(i), values[i]});
    }
    if (!out.empty() && out.back().value != 0) out.push_back({begin_of(count_), 0});
    return out;
  }

 private:
  int64_t begin_, width_;
  size_t count_;
};

class Curves {
 public:
  Curves(const Trace& trace, const Process& process, const Intervals& intervals)
      : trace_(trace), process_(process), intervals_(intervals) {}

  bool is_work(const Event& event) const {
    const Shape& shape = trace_.shape(event);
    return is_stream_work(shape.kind) && drawable(shape);
  }

  GpuCurve busy(uint32_t device, const std::vector<const Lane*>& lanes) const {
    std::vector<double> sums(intervals_.count());
    int64_t done = INT64_MIN;  // until when the GPU's time is accounted for
    in_order(lanes, [&](const Event& event) {
      const int64_t begin = std::max(event.begin, done);
      if (event.end > begin) {
        intervals_.spread(sums, begin, event.end, 100.0 / static_cast<double>(intervals_.width()));
      }
      done = std::max(done, event.end);
    });
    for (double& value : sums) value = std::min(100.0, value);
    return {device, "GPU busy", "%", intervals_.points(sums)};
  }

  GpuCurve bandwidth(uint32_t device, const std::vector<const Lane*>& lanes) const {
    std::vector<double> sums(intervals_.count());
    bool any = false;
    for (const Lane* lane : lanes) {
      for (const Event& event : process_.lane_events(*lane)) {
        if (trace_.shape(event).kind != Kind::gpu_copy || !is_work(event)) continue;
        const int64_t end = std::max(event.end, event.begin + 1);
        const auto bytes = static_cast<double>(process_.extra(event).bytes);
        const double per_ns = bytes / static_cast<double>(end - event.begin);
        intervals_.spread(sums, event.begin, end, per_ns / static_cast<double>(intervals_.width()));
        any = true;
      }
    }
    if (!any) return {device, {}, "", {}};
    return {device, "copy bandwidth", "GB/s", intervals_.points(sums)};
  }

  GpuCurve queue(const Lane& lane) const {
    std::vector<double> waiting(intervals_.count());
    for (const Event& event : process_.lane_events(lane)) {
      if (!is_work(event) || event.partner == EventIndex::none) continue;
      const int64_t launched = process_.event(event.partner).begin;
      if (launched >= event.begin) continue;
      waiting[intervals_.at(launched)] += 1;
      waiting[intervals_.at(event.begin)] -= 1;
    }
    double sum = 0;
    for (double& value : waiting) value = sum += value;
    return {lane.device, fmt::format("queue of stream {}", lane.stream), "queued",
            intervals_.points(waiting)};
  }

 private:
  // Calls `visit` with the work of all lanes in order of begin.
  template <typename Visit>
  void in_order(const std::vector<const Lane*>& lanes, const Visit& visit) const {
    struct Next {
      int64_t begin;
      uint32_t event, end;  // the end of its lane
    };
    const EventTable& events = process_.events;
    const auto later = [](const Next& a, const Next& b) { return a.begin > b.begin; };
    std::priority_queue<Next, std::vector<Next>, decltype(later)> heads(later);
    const auto push = [&](uint32_t event, uint32_t end) {
      if (event < end) heads.push({events.begin_of(event), event, end});
    };
    for (const Lane* lane : lanes) push(lane->first_event, lane->first_event + lane->event_count);
    while (!heads.empty()) {
      const Next next = heads.top();
      heads.pop();
      const Event event = events[next.event];
      if (is_work(event)) visit(event);
      push(next.event + 1, next.end);
    }
  }

  const Trace& trace_;
  const Process& process_;
  const Intervals& intervals_;
};

}  // namespace

std::vector<GpuCurve> gpu_curves(const Trace& trace, const Process& process) {
  std::map<uint32_t, std::vector<const Lane*>> lanes;
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::stream) continue;
    for (const Event& event : process.lane_events(lane)) {
      const Shape& shape = trace.shape(event);
      if (!is_stream_work(shape.kind) || !drawable(shape)) continue;
      begin = std::min(begin, event.begin);
      if (event.partner != EventIndex::none) {
        begin = std::min(begin, process.event(event.partner).begin);
      }
      end = std::max(end, event.end);
    }
    lanes[lane.device].push_back(&lane);
  }
  std::vector<GpuCurve> curves;
  if (begin > end) return curves;
  const Intervals intervals(begin, end);
  const Curves all(trace, process, intervals);
  const auto keep = [&](GpuCurve curve) {
    if (curve.points.size() > 1) curves.push_back(std::move(curve));
  };
  for (const auto& [device, of_device] : lanes) {
    keep(all.busy(device, of_device));
    keep(all.bandwidth(device, of_device));
    for (const Lane* lane : of_device) keep(all.queue(*lane));
  }
  return curves;
}

}  // namespace gpuprof
