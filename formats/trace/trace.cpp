// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/trace.h"

#include <algorithm>
#include <cstring>

#include "formats/core/string_table.h"

namespace gpuprof {

StringPool::StringPool() { intern({}); }

StringIndex StringPool::intern(std::string_view text) {
  const auto found = index_.find(text);
  if (found != index_.end()) return found->second;
  const auto index = static_cast<StringIndex>(texts_.size());
  texts_.emplace_back(text);
  index_.emplace(texts_.back(), index);
  return index;
}

ShapeIndex ShapePool::intern(const Shape& shape) {
  const uint64_t hash = hash_bytes(&shape, sizeof shape);
  const auto [first, last] = index_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (std::memcmp(&shapes_[number(at->second)], &shape, sizeof shape) == 0) return at->second;
  }
  const auto index = static_cast<ShapeIndex>(shapes_.size());
  shapes_.push_back(shape);
  index_.emplace(hash, index);
  return index;
}

LaneIndex Process::lane_index(const Event& event) const {
  const auto after =
      std::upper_bound(lanes.begin(), lanes.end(), number(event.index),
                       [](uint32_t index, const Lane& lane) { return index < lane.first_event; });
  // Of lanes that begin at the same event all but the last are empty.
  return static_cast<LaneIndex>(after - lanes.begin() - 1);
}

std::span<const Step> Process::window_steps() const {
  const auto inside = [this](const Step& step) {
    if (has_summary) return step.step >= summary.first_step() && step.step <= summary.last_step();
    return step.begin >= window_begin;
  };
  if (has_summary && summary.last_step() + 1 == summary.first_step()) return {};
  const auto first = std::find_if(steps.begin(), steps.end(), inside);
  const auto last = std::find_if_not(first, steps.end(), inside);
  return {first, last};
}

const GraphNode* Process::graph_node(const Shape& shape, const EventExtra& extra) const {
  if (!is_stream_work(shape.kind) || extra.value == 0) return nullptr;
  const auto found = graph_nodes.find(extra.value);
  return found == graph_nodes.end() ? nullptr : &found->second;
}

const StreamLink* Process::stream_of(uint64_t handle) const {
  const auto found = std::find_if(streams.begin(), streams.end(),
                                  [handle](const StreamLink& s) { return s.handle == handle; });
  return found == streams.end() ? nullptr : &*found;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::none: return "none";
#define GPUPROF_NAME(name, number, ...) \
  case Kind::name: return #name;
      GPUPROF_KINDS(GPUPROF_NAME, GPUPROF_NAME, GPUPROF_NAME)
#undef GPUPROF_NAME
  }
  return "unknown";
}

std::string_view moment_name(LiveMoment moment) {
  switch (moment) {
    case LiveMoment::window_begins: return "window_begins";
    case LiveMoment::out_of_memory: return "out_of_memory";
    case LiveMoment::left: return "left";
    case LiveMoment::unknown: break;
  }
  return "unknown";
}

const LiveMemory* Process::live_at(LiveMoment moment) const {
  for (const LiveMemory& live : live_memory) {
    if (live.moment == moment) return &live;
  }
  return nullptr;
}

const Step* Process::step_at(int64_t time) const {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                      [](int64_t t, const Step& step) { return t < step.begin; });
  if (after == steps.begin()) return nullptr;
  const Step& step = *std::prev(after);
  return time < step.end ? &step : nullptr;
}

}  // namespace gpuprof
