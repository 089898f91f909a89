// SPDX-License-Identifier: Apache-2.0
// One Events chunk, decoded without a look at anything outside it: chunks are decoded in parallel
// and put together in order. Lanes, which are nearly all of a chunk, are read by hand, straight
// into packed events; the rest by protobuf's parser.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/gpuprof.pb.h"
#include "formats/trace/event_table.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// An event before its neighbours in other chunks are known. Times are clock units.
struct RawEvent {
  uint64_t begin, end;
  uint32_t shape;  // in the chunk
  uint32_t correlation;
  uint32_t extra;  // place + 1 among the extras of its part; 0: none
};

// The events of one lane in one chunk, in the chunk's order, 16 bytes each.
class LanePart {
 public:
  void reserve(size_t count);
  void add(const RawEvent& event);  // extra: 0 or the next one
  size_t size() const { return events_.size(); }
  // Whether events are in the order of a lane; first() and last() are those of the part.
  bool in_order() const { return in_order_; }
  const RawEvent& first() const { return first_; }
  const RawEvent& last() const { return last_; }

  // Frees the events; what is beside them stays.
  void forget_events();

  // Calls `visit(RawEvent)` with each until it returns false.
  template <typename Visit>
  void each(const Visit& visit) const;

  std::vector<EventExtra> extras;                         // stack: 1 + index in the chunk; 0: none
  std::shared_ptr<const std::vector<ShapeIndex>> shapes;  // of the chunk, set when they are known
  std::shared_ptr<const std::vector<StackIndex>> stacks;

 private:
  static constexpr int32_t kFar = INT32_MIN;
  static constexpr uint32_t kLong = 0xffffffff;
  static constexpr uint32_t kHasExtra = 1u << 31;
  struct Packed {
    int32_t begin;      // from the end of the event before; kFar: in wide_
    uint32_t duration;  // kLong: in wide_
    uint32_t shape;     // and kHasExtra
    uint32_t correlation;
  };
  std::vector<Packed> events_;
  std::vector<uint64_t> wide_;  // begins and durations that do not fit, in order
  RawEvent first_{}, last_{};
  bool in_order_ = true;
};

// A thread's Python stack at a moment: no event, though it lies in the lane of its thread.
struct RawSample {
  uint64_t time;
  uint32_t stack;  // 1 + index in the chunk
};

// Host memory given or taken back: no event either.
struct RawHeapSample {
  uint64_t time;
  uint64_t address, bytes;
  uint32_t shape;  // in the chunk
  uint32_t stack;  // 1 + index in the chunk; 0: none
};

struct DecodedLane {
  dump::Lane lane;  // without its columns
  LanePart part;
  std::vector<RawSample> samples;
  std::vector<RawHeapSample> heap;
  uint64_t claimed = 0;         // events that it says it has
  const char* wrong = nullptr;  // why it cannot be used
};

struct DecodedEvents {
  bool readable = false;
  dump::Events rest;  // without lanes
  std::vector<DecodedLane> lanes;
};

// Thread-safe. Lanes with which there would be more than `most_events` are counted, not decoded: a
// few compressed bytes can claim millions.
DecodedEvents decode_events(std::string_view body, uint64_t most_events);

template <typename Visit>
void LanePart::each(const Visit& visit) const {
  uint64_t end = 0;
  size_t wide = 0;
  uint32_t extra = 0;
  for (const Packed& packed : events_) {
    RawEvent event;
    event.begin =
        packed.begin == kFar ? wide_[wide++] : end + static_cast<uint64_t>(int64_t{packed.begin});
    event.end = event.begin + (packed.duration == kLong ? wide_[wide++] : packed.duration);
    event.shape = packed.shape & ~kHasExtra;
    event.correlation = packed.correlation;
    event.extra = packed.shape & kHasExtra ? ++extra : 0;
    end = event.end;
    if (!visit(event)) return;
  }
}

}  // namespace gpuprof
