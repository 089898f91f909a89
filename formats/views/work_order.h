// SPDX-License-Identifier: Apache-2.0
// The work of several streams in order, one event at a time, without a list of it.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "formats/trace/trace.h"
#include "formats/views/slices.h"

namespace gpuprof {

// By shape: whether an event of it is work with times.
inline std::vector<bool> work_shapes(const Trace& trace) {
  std::vector<bool> out;
  for (const Shape& shape : trace.shapes) {
    out.push_back(is_stream_work(shape.kind) && drawable(shape));
  }
  return out;
}

// Calls `visit(begin, end, event)` with the work of all lanes in order of begin; what begins
// together comes longer first, then lane by lane.
template <typename Visit>
void each_work_in_order(const EventTable& events, std::span<const Lane* const> lanes,
                        const std::vector<bool>& works, const Visit& visit) {
  struct Head {
    int64_t begin, end;
    size_t lane;
    uint32_t event;
    bool operator>(const Head& other) const {
      return std::tuple(begin, other.end, lane) > std::tuple(other.begin, end, other.lane);
    }
  };
  const auto find = [&](Head& head) {
    const uint32_t end = lanes[head.lane]->first_event + lanes[head.lane]->event_count;
    while (head.event < end && !works[number(events.shape_of(head.event))]) ++head.event;
    if (head.event == end) return false;
    head.begin = events.begin_of(head.event);
    head.end = events.end_of(head.event);
    return true;
  };
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    Head head{0, 0, lane, lanes[lane]->first_event};
    if (find(head)) heads.push(head);
  }
  while (!heads.empty()) {
    Head head = heads.top();
    heads.pop();
    // Work of one stream mostly follows work of the same.
    bool more = true;
    while (more && (heads.empty() || !(head > heads.top()))) {
      visit(head.begin, head.end, head.event);
      ++head.event;
      more = find(head);
    }
    if (more) heads.push(head);
  }
}

}  // namespace gpuprof
