// SPDX-License-Identifier: Apache-2.0
#include "formats/views/impossible_times.h"

#include <algorithm>

#include "formats/views/work_order.h"

namespace gpuprof {
namespace {

constexpr int64_t kLeastTolerance = 2'000;  // ns

class Looker {
 public:
  Looker(const Trace& trace, const Process& process)
      : trace_(trace),
        events_(process.events),
        tolerance_(
            std::max(kLeastTolerance, static_cast<int64_t>(process.summary.gpu_time_error_ns()))),
        works_(work_shapes(trace)) {}

  void look_at(const Lane& lane) {
    int64_t begin_before = 0, end_before = 0;
    for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
      const ShapeIndex shape = events_.shape_of(i);
      if (!works_[number(shape)]) continue;
      ++found_.works;
      const int64_t begin = events_.begin_of(i), end = events_.end_of(i);
      const EventIndex call = events_.partner_of(i);
      const int64_t by = call == EventIndex::none ? 0 : events_.begin_of(number(call)) - begin;
      if (by > tolerance_) {
        ++found_.early;
        found_.earliest_ns = std::max(found_.earliest_ns, by);
      } else if (begin == begin_before && end == end_before && end - begin >= kLeastTolerance &&
                 trace_.shapes[shape].graph == 0) {
        ++found_.repeated;
      }
      begin_before = begin;
      end_before = end;
    }
  }

  const ImpossibleTimes& found() const { return found_; }

 private:
  const Trace& trace_;
  const EventTable& events_;
  const int64_t tolerance_;
  const std::vector<bool> works_;
  ImpossibleTimes found_;
};

}  // namespace

ImpossibleTimes impossible_times(const Trace& trace, const Process& process) {
  Looker looker(trace, process);
  for (const Lane& lane : process.lanes) {
    if (lane.type == LaneType::stream) looker.look_at(lane);
  }
  return looker.found();
}

}  // namespace gpuprof
