// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_clock.h"

#include "collector/base/clock.h"

namespace gpuprof {

void CuptiClock::begin(CUpti_TimestampCallbackFunc clock, double ticks_per_ns) {
  clock_ = clock;
  AnchoredClock::begin(read(), ticks_per_ns);
}

// Of several tries the one whose readings of our clock lie closest around that of the other.
CuptiClock::Anchor CuptiClock::read() const {
  Anchor best{0, 0, ~uint64_t{0}};
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = now_ticks();
    const uint64_t theirs = clock_();
    const uint64_t after = now_ticks();
    if (after - before >= best.width) continue;
    best = {theirs, before + (after - before) / 2, after - before};
  }
  return best;
}

}  // namespace gpuprof
