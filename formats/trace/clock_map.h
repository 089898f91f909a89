// SPDX-License-Identifier: Apache-2.0
// From the ticks of a dump to nanoseconds, through the anchors that the dump carries.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/gpuprof.pb.h"

namespace gpuprof {

struct Anchor {
  uint64_t ticks;
  int64_t monotonic_ns;
  int64_t realtime_ns;
};

// Piecewise linear between anchors and exact on them. Outside, CLOCK_MONOTONIC goes on with the
// rate of the first to the last anchor and CLOCK_REALTIME keeps its distance to it. Immutable once
// made.
class ClockMap {
 public:
  ClockMap() = default;
  // Anchors in any order; those that contradict an earlier one (ticks or CLOCK_MONOTONIC going
  // back) are dropped. `ticks_per_second` is used where fewer than two are left; 0: a tick is taken
  // for 1 ns.
  ClockMap(std::vector<Anchor> anchors, uint32_t shift, uint64_t ticks_per_second);
  static ClockMap from(const dump::Clock& clock);

  class Cursor;  // the same conversion, for many times that lie close together

  int64_t monotonic_ns(uint64_t ticks) const;
  int64_t realtime_ns(uint64_t ticks) const;
  uint64_t ticks(uint64_t units) const { return units << shift_; }
  uint32_t shift() const { return shift_; }
  // Whether there is what conversion needs: without, times are ticks, from an unknown origin.
  bool usable() const { return usable_; }
  const std::vector<Anchor>& anchors() const { return anchors_; }

 private:
  std::vector<Anchor> anchors_;
  uint32_t shift_ = 0;
  uint64_t rate_ticks_ = 1;  // rate outside the anchors: rate_ns_ per rate_ticks_
  uint64_t rate_ns_ = 1;
  bool usable_ = false;
};

// Keeps the piece of the map that the last time was in, and divides by multiplication; results are
// those of monotonic_ns(), exactly.
class ClockMap::Cursor {
 public:
  explicit Cursor(const ClockMap& map) : map_(map) {}
  int64_t monotonic_ns(uint64_t ticks) {
    if (ticks < first_ || ticks >= end_) find(ticks);
    const uint64_t delta = ticks - first_;
    if (delta >= limit_) return map_.monotonic_ns(ticks);
    auto quotient = static_cast<uint64_t>(static_cast<double>(delta) * rate_);
    const auto rest = static_cast<int64_t>(delta * by_ + over_ / 2 - quotient * over_);
    if (rest < 0) {
      --quotient;
    } else if (rest >= static_cast<int64_t>(over_)) {
      ++quotient;
    }
    return base_ + static_cast<int64_t>(quotient);
  }

 private:
  void find(uint64_t ticks);

  const ClockMap& map_;
  uint64_t first_ = 1, end_ = 0;  // the piece, in ticks
  uint64_t limit_ = 0;            // distances from first_ below it can be done here
  uint64_t by_ = 1, over_ = 1;    // ns for ticks
  double rate_ = 1;
  int64_t base_ = 0;
};

}  // namespace gpuprof
