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

}  // namespace gpuprof
