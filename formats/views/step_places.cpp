// SPDX-License-Identifier: Apache-2.0
#include "formats/views/step_places.h"

#include <algorithm>

namespace gpuprof {

StepPlaces::StepPlaces(const Trace& trace, const Process& process, std::span<const Step> steps)
    : process_(process), steps_(steps), places_(process.events.size()) {
  const auto is_gpu = [](const Lane& lane) {
    return lane.type == LaneType::stream || lane.type == LaneType::device;
  };
  for (const Lane& lane : process.lanes) {
    if (!is_gpu(lane)) place_calls(trace, lane);
  }
  for (const Lane& lane : process.lanes) {  // a lane of a GPU may lie before its calls'
    if (is_gpu(lane)) place_work(trace, lane);
  }
}

uint32_t StepPlaces::at(int64_t time) const {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), time,
                                      [](int64_t t, const Step& step) { return t < step.begin; });
  const auto place = static_cast<uint32_t>(2 * (after - steps_.begin()));
  return after != steps_.begin() && time < std::prev(after)->end ? place - 1 : place;
}

// Calls of a call go with it.
void StepPlaces::place_calls(const Trace& trace, const Lane& lane) {
  const EventTable& events = process_.events;
  int64_t outer_end = INT64_MIN;
  uint32_t outer_place = 0;
  for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
    const int64_t begin = events.begin_of(i);
    const bool call = is_call_kind(trace.shapes[events.shape_of(i)].kind);
    if (call && begin < outer_end) {
      places_[i] = outer_place;
      continue;
    }
    places_[i] = at(begin);
    if (!call) continue;
    outer_end = events.end_of(i);
    outer_place = places_[i];
  }
}

void StepPlaces::place_work(const Trace& trace, const Lane& lane) {
  const EventTable& events = process_.events;
  bool known = false;  // of a stream: `place` is that of the work before
  uint32_t place = 0;
  std::vector<uint32_t> ranges;  // without work after them so far
  for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
    const EventIndex call = events.partner_of(i);
    places_[i] = at(events.begin_of(i));
    if (call != EventIndex::none) {
      places_[i] = place = places_[number(call)];
      known = lane.type == LaneType::stream;
    } else if (trace.shapes[events.shape_of(i)].kind == Kind::gpu_annotation) {
      ranges.push_back(i);
      continue;
    } else if (known) {
      places_[i] = place;
    }
    for (const uint32_t range : ranges) places_[range] = places_[i];
    ranges.clear();
  }
}

}  // namespace gpuprof
