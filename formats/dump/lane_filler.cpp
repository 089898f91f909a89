// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/lane_filler.h"

#include <algorithm>
#include <memory>

#include "formats/io/ordered_jobs.h"
#include "formats/trace/framework_join.h"

namespace gpuprof {
namespace {

constexpr int64_t kLatest = int64_t{1} << 62;
constexpr size_t kEventsOfJob = 1 << 16;
// CUPTI converts times by what it knows of the clocks at the moment, so that the same moment can
// come out differently as the end of one piece of work and as the begin of the next.
constexpr int64_t kClockNoiseNs = 200;

// An event that lies in a part after one that begins later: an outer call or range is written when
// it ends, after what lies in it.
struct LateEvent {
  RawEvent event;
  const LanePart* part;
};

// Visits the events of a lane in its order; of equal ones, in the file's.
class LaneMerge {
 public:
  explicit LaneMerge(std::vector<LanePart>& parts) : parts_(parts) { find_late(); }

  // `visit(const RawEvent&, const LanePart&)`
  template <typename Visit>
  void run(const Visit& visit) {
    size_t late = 0;
    RawEvent newest{};
    bool any = false;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const LanePart& part = parts_[i];
      const bool mixed = mixed_[i];
      part.each([&](const RawEvent& event) {
        if (mixed && any && is_earlier(event, newest)) return true;  // among the late ones
        for (; late < late_.size() && is_earlier(late_[late].event, event); ++late) {
          visit(late_[late].event, *late_[late].part);
        }
        visit(event, part);
        newest = event;
        any = true;
        return true;
      });
      parts_[i].forget_events();  // what late ones refer to stays
    }
    for (; late < late_.size(); ++late) visit(late_[late].event, *late_[late].part);
    std::vector<LanePart>().swap(parts_);
  }

 private:
  void find_late() {
    RawEvent newest{};
    bool any = false;
    for (const LanePart& part : parts_) {
      const bool mixed =
          part.size() && (!part.in_order() || (any && is_earlier(part.first(), newest)));
      mixed_.push_back(mixed);
      if (mixed) {
        part.each([&](const RawEvent& event) {
          if (any && is_earlier(event, newest)) {
            late_.push_back({event, &part});
          } else {
            newest = event;
            any = true;
          }
          return true;
        });
      } else if (part.size()) {
        newest = part.last();
        any = true;
      }
    }
    std::stable_sort(late_.begin(), late_.end(), [](const LateEvent& a, const LateEvent& b) {
      return is_earlier(a.event, b.event);
    });
  }

  std::vector<LanePart>& parts_;
  std::vector<bool> mixed_;
  std::vector<LateEvent> late_;
};

// Some lanes that follow each other.
class FillJob {
 public:
  // `kinds`: of each shape.
  FillJob(const std::vector<Kind>& kinds, Process& process, EventTable::Writer writer,
          uint32_t first_extra)
      : kinds_(kinds), process_(process), writer_(std::move(writer)), extra_(first_extra) {}

  void add(OpenLane& lane) { lanes_.push_back(&lane); }
  const std::vector<OpenLane*>& lanes() const { return lanes_; }
  EventTable::Writer take_writer() { return std::move(writer_); }
  int64_t last() const { return last_; }

  void run() {
    ClockMap::Cursor clock(process_.clock);
    for (OpenLane* const lane : lanes_) {
      const bool in_order = lane->lane.type == LaneType::stream;
      int64_t begin = 0, end = 0;  // of the one before
      uint64_t kinds = 0;
      LaneMerge(lane->parts).run([&](const RawEvent& raw, const LanePart& part) {
        Event event;
        event.begin = time_of(clock, raw.begin);
        event.end = std::max(event.begin, time_of(clock, raw.end));
        if (in_order) {
          // Work of a stream that follows other work begins where that ends, not a little before.
          if (end - event.begin <= kClockNoiseNs && event.end >= end) {
            event.begin = std::max(event.begin, end);
          }
          event.begin = std::max(event.begin, begin);
          event.end = std::max(event.end, event.begin);
          begin = event.begin, end = event.end;
        }
        event.shape = (*part.shapes)[raw.shape];
        event.correlation = raw.correlation;
        if (raw.extra) event.extra = copy_extra(clock, event.shape, part, raw.extra);
        last_ = std::max(last_, event.end);
        const Kind kind = kinds_[number(event.shape)];
        kinds |= Lane::bit_of(kind);
        writer_.add(event, gets_extra(kind));
      });
      lane->lane.kinds = kinds;
    }
  }

 private:
  int64_t time_of(ClockMap::Cursor& clock, uint64_t units) const {
    return trace_time(clock.monotonic_ns(process_.clock.ticks(units)), process_.realtime_offset);
  }

  uint32_t copy_extra(ClockMap::Cursor& clock, ShapeIndex shape, const LanePart& part,
                      uint32_t number) {
    EventExtra extra = part.extras[number - 1];
    if (extra.stack != StackIndex::none) {
      extra.stack = (*part.stacks)[static_cast<uint32_t>(extra.stack) - 1];
    }
    const Kind kind = kinds_[gpuprof::number(shape)];
    if ((kind == Kind::gpu_sync || kind == Kind::gpu_event) && extra.address2) {
      extra.address2 = static_cast<uint64_t>(time_of(clock, extra.address2));  // device time
    }
    process_.extras[extra_] = extra;
    return extra_++;
  }

  const std::vector<Kind>& kinds_;
  Process& process_;
  EventTable::Writer writer_;
  uint32_t extra_;
  std::vector<OpenLane*> lanes_;
  int64_t last_ = 0;
};

}  // namespace

int64_t trace_time(int64_t monotonic, int64_t realtime_offset) {
  int64_t sum = 0;
  if (__builtin_add_overflow(monotonic, realtime_offset, &sum)) {
    sum = realtime_offset > 0 ? kLatest : 0;
  }
  return std::clamp<int64_t>(sum, 0, kLatest);
}

int64_t fill_events(const Trace& trace, std::vector<OpenLane>& lanes, Process& process,
                    int64_t otherwise) {
  size_t events = 0, extras = process.extras.size();
  for (const OpenLane& open : lanes) {
    events += open.count;
    for (const LanePart& part : open.parts) extras += part.extras.size();
  }
  size_t extra = process.extras.size();
  process.extras.resize(extras);
  process.events = EventTable(events, trace.shapes.size());
  std::vector<Kind> kinds;
  for (const Shape& shape : trace.shapes) kinds.push_back(shape.kind);
  OrderedJobs<FillJob> jobs;
  std::vector<EventTable::Writer> writers;
  int64_t last = otherwise;
  const auto take = [&] {
    const std::unique_ptr<FillJob> job = jobs.next();
    writers.push_back(job->take_writer());
    last = std::max(last, job->last());
    for (const OpenLane* const lane : job->lanes()) process.lanes.push_back(lane->lane);
  };
  size_t first = 0;
  for (size_t at = 0; at < lanes.size();) {
    auto job = std::make_unique<FillJob>(kinds, process, EventTable::Writer(process.events, first),
                                         static_cast<uint32_t>(extra));
    size_t in_job = 0;
    for (; at < lanes.size() && in_job < kEventsOfJob; ++at) {
      OpenLane& open = lanes[at];
      open.lane.first_event = static_cast<uint32_t>(first);
      open.lane.event_count = static_cast<uint32_t>(open.count);
      first += open.count;
      in_job += open.count;
      for (const LanePart& part : open.parts) extra += part.extras.size();
      job->add(open);
    }
    if (!jobs.has_room()) take();
    jobs.submit(std::move(job), at == lanes.size());
  }
  while (!jobs.empty()) take();
  process.events.finish(writers);
  return last;
}

}  // namespace gpuprof
