// SPDX-License-Identifier: Apache-2.0
#include "formats/views/gpu_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/views/work_order.h"

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
  Curves(const Trace& trace, const Process& process, const std::vector<bool>& works,
         const Intervals& intervals)
      : trace_(trace), process_(process), works_(works), intervals_(intervals) {}

  bool is_work(uint32_t event) const { return works_[number(process_.events.shape_of(event))]; }

  GpuCurve busy(uint32_t device, const std::vector<const Lane*>& lanes) const {
    std::vector<double> sums(intervals_.count());
    const auto add = [&](int64_t begin, int64_t end) {
      intervals_.spread(sums, begin, end, 100.0 / static_cast<double>(intervals_.width()));
    };
    int64_t begin = 0, end = 0;  // of time without a pause
    const auto take = [&](int64_t work_begin, int64_t work_end, uint32_t) {
      if (work_begin > end) {
        if (begin < end) add(begin, end);
        begin = work_begin;
        end = work_end;
      }
      end = std::max(end, work_end);
    };
    each_work_in_order(process_.events, lanes, works_, take);
    if (begin < end) add(begin, end);
    for (double& value : sums) value = std::min(100.0, value);
    return {device, "GPU busy", "%", intervals_.points(sums)};
  }

  GpuCurve bandwidth(uint32_t device, const std::vector<const Lane*>& lanes) const {
    std::vector<double> sums(intervals_.count());
    bool any = false;
    for (const Lane* lane : lanes) {
      for (uint32_t i = lane->first_event; i < lane->first_event + lane->event_count; ++i) {
        if (!is_work(i) ||
            trace_.shape_of(process_, static_cast<EventIndex>(i)).kind != Kind::gpu_copy)
          continue;
        const Event event = process_.events[i];
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
    const EventTable& events = process_.events;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      const EventIndex call = events.partner_of(i);
      if (!is_work(i) || call == EventIndex::none) continue;
      const int64_t launched = events.begin_of(number(call)), begin = events.begin_of(i);
      if (launched >= begin) continue;
      waiting[intervals_.at(launched)] += 1;
      waiting[intervals_.at(begin)] -= 1;
    }
    double sum = 0;
    for (double& value : waiting) value = sum += value;
    return {lane.device, fmt::format("queue of stream {}", lane.stream), "queued",
            intervals_.points(waiting)};
  }

 private:
  const Trace& trace_;
  const Process& process_;
  const std::vector<bool>& works_;  // by shape
  const Intervals& intervals_;
};

}  // namespace

std::vector<GpuCurve> gpu_curves(const Trace& trace, const Process& process) {
  const std::vector<bool> works = work_shapes(trace);
  const EventTable& events = process.events;
  std::map<uint32_t, std::vector<const Lane*>> lanes;
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::stream) continue;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      if (!works[number(events.shape_of(i))]) continue;
      const EventIndex call = events.partner_of(i);
      begin = std::min(begin, events.begin_of(i));
      if (call != EventIndex::none) begin = std::min(begin, events.begin_of(number(call)));
      end = std::max(end, events.end_of(i));
    }
    lanes[lane.device].push_back(&lane);
  }
  std::vector<GpuCurve> curves;
  if (begin > end) return curves;
  const Intervals intervals(begin, end);
  const Curves all(trace, process, works, intervals);
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
