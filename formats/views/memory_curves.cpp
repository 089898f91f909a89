// SPDX-License-Identifier: Apache-2.0
#include "formats/views/memory_curves.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace gpuprof {
namespace {

using LiveBytes = std::unordered_map<uint64_t, uint64_t>;  // by address

constexpr int64_t kLargest = int64_t{1} << 60;  // of memory; more is an error in the file

int64_t sum_of(const LiveBytes& live) {
  int64_t sum = 0;
  for (const auto& [address, bytes] : live) {
    if (bytes <= uint64_t{kLargest} && sum <= kLargest) sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

// `live`: what is allocated before the first change; `of_stretch`: of which memory.
std::vector<MemoryPoint> curve_of(std::vector<MemoryChange>& changes, LiveBytes live,
                                  const Process& process, LiveBytes Stretch::*of_stretch) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.time < b.time; });
  std::vector<MemoryPoint> points;
  int64_t total = sum_of(live);
  const auto point = [&](const MemoryChange& c, int64_t change) {
    total += change;
    points.push_back({c.time, total, change, c.event});
  };
  auto stretch = process.stretches.begin();
  for (const MemoryChange& c : changes) {
    for (; stretch != process.stretches.end() && stretch->begin <= c.time; ++stretch) {
      live = (*stretch).*of_stretch;
      total = sum_of(live);
    }
    if (c.release) {
      const auto found = live.find(c.address);
      if (found == live.end()) continue;
      point(c, -static_cast<int64_t>(found->second));
      live.erase(found);
    } else if (c.bytes <= uint64_t{kLargest} && total <= kLargest) {
      const auto [at, fresh] = live.emplace(c.address, c.bytes);
      if (!fresh) {  // its release was not seen
        total -= static_cast<int64_t>(at->second);
        at->second = c.bytes;
      }
      point(c, static_cast<int64_t>(c.bytes));
    }
  }
  return points;
}

constexpr uint32_t kPinned = 2;    // CUPTI_ACTIVITY_MEMORY_KIND_PINNED
constexpr uint32_t kReleased = 2;  // CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE

bool is_of_memory(const Shape& shape) {
  return shape.kind == Kind::alloc || shape.kind == Kind::dealloc ||
         shape.kind == Kind::gpu_memory || shape.kind == Kind::tensor;
}

int64_t total_of(const Stretch& stretch, const TensorCurve& curve) {
  for (const Stretch::TensorTotal& each : stretch.tensors) {
    if (each.device_type == curve.device_type && each.device_id == curve.device_id) {
      return each.bytes;
    }
  }
  return 0;
}

// Points in order of time: events of a lane are, lanes among each other are
// not.
std::vector<TensorCurve> tensor_curves(const Trace& trace, const Process& process) {
  std::map<std::pair<uint32_t, uint32_t>, TensorCurve> curves;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    if (shape.kind != Kind::tensor) continue;
    const Event event = process.events[i];
    const EventExtra& extra = process.extra(event);
    TensorCurve& curve = curves[{shape.device_type, shape.device_id}];
    curve.device_type = shape.device_type;
    curve.device_id = shape.device_id;
    curve.totals_given = extra.address2 != EventExtra::kNotGiven;
    const auto limited = [](int64_t value) { return std::clamp(value, -kLargest, kLargest); };
    curve.points.push_back({event.begin, limited(static_cast<int64_t>(extra.address2)),
                            limited(static_cast<int64_t>(extra.bytes)),
                            static_cast<EventIndex>(i)});
  }
  std::vector<TensorCurve> out;
  for (auto& [key, curve] : curves) {
    std::stable_sort(curve.points.begin(), curve.points.end(),
                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.time < b.time; });
    int64_t total = 0;
    auto stretch = process.stretches.begin();
    for (MemoryPoint& point : curve.points) {
      for (; stretch != process.stretches.end() && stretch->begin <= point.time; ++stretch) {
        total = total_of(*stretch, curve);
      }
      total = std::clamp(total + point.change, -kLargest, kLargest);
      if (!curve.totals_given) point.total = total;
    }
    out.push_back(std::move(curve));
  }
  return out;
}

// Correlation ids of the calls that CUPTI has a record of.
std::unordered_set<uint32_t> recorded_calls(const Trace& trace, const Process& process) {
  std::unordered_set<uint32_t> out;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    if (trace.shapes[process.events.shape_of(i)].kind != Kind::gpu_memory) continue;
    if (const uint32_t id = process.events.correlation_of(i)) out.insert(id);
  }
  return out;
}

}  // namespace

bool names_host_memory(std::string_view api) { return api.find("Host") != std::string_view::npos; }

MemoryChanges memory_changes(const Trace& trace, const Process& process) {
  const std::unordered_set<uint32_t> recorded = recorded_calls(trace, process);
  MemoryChanges out;
  for (uint32_t i = 0; i < process.events.size(); ++i) {
    const Shape& shape = trace.shapes[process.events.shape_of(i)];
    const bool call = shape.kind == Kind::alloc || shape.kind == Kind::dealloc;
    if (!call && shape.kind != Kind::gpu_memory) continue;
    const Event event = process.events[i];
    const EventExtra& extra = process.extra(event);
    const auto index = static_cast<EventIndex>(i);
    if (shape.kind == Kind::gpu_memory) {
      auto& list = shape.memory_kind == kPinned ? out.host : out.device;
      list.push_back(
          {event.begin, extra.address, extra.bytes, shape.cupti_type == kReleased, index});
    } else {
      if (shape.result != 0 || extra.address == 0 || recorded.contains(event.correlation)) continue;
      const bool host = names_host_memory(trace.text(shape.name));
      const bool release = shape.kind == Kind::dealloc;
      (host ? out.host : out.device)
          .push_back(
              {release ? event.begin : event.end, extra.address, extra.bytes, release, index});
    }
  }
  return out;
}

MemoryCurves memory_curves(const Trace& trace, const Process& process) {
  LiveBytes device_before, host_before;
  if (const LiveMemory* const live = process.live_at(LiveMoment::window_begins)) {
    for (const LiveAllocation& each : live->allocations) {
      if (each.is_block()) continue;
      const bool host = names_host_memory(trace.text(each.api));
      (host ? host_before : device_before)[each.address] = each.bytes;
    }
  }
  // Most traces of dumps have none, and many more events than shapes.
  if (process.events.size() > trace.shapes.size() &&
      std::none_of(trace.shapes.begin(), trace.shapes.end(), is_of_memory)) {
    return {{}, {}, sum_of(device_before), {}};
  }
  MemoryChanges changes = memory_changes(trace, process);
  return {curve_of(changes.device, device_before, process, &Stretch::device),
          curve_of(changes.host, host_before, process, &Stretch::host), sum_of(device_before),
          tensor_curves(trace, process)};
}

}  // namespace gpuprof
