// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_clock.h"

#include <algorithm>

#include "collector/base/clock.h"

namespace gpuprof {
namespace {

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

double signed_distance(uint64_t from, uint64_t to) {
  return static_cast<double>(static_cast<int64_t>(to - from));
}

}  // namespace

void CuptiClock::begin(CUpti_TimestampCallbackFunc clock, double ticks_per_ns) {
  constexpr double kSpacingNs = 100e6;
  clock_ = clock;
  spacing_ = kSpacingNs * ticks_per_ns;
  count_ = 0;
  anchors_[count_++] = read();
  error_ = anchors_[0].width / 2;
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

void CuptiClock::add(const Anchor& now) {
  error_ = std::max(error_, now.width / 2);
  const bool close = count_ > 1 && signed_distance(anchors_[count_ - 2].ticks,
                                                   anchors_[count_ - 1].ticks) < spacing_;
  if (close) {
    anchors_[count_ - 1] = now;
    return;
  }
  if (count_ > 1) {
    const uint64_t put = expected(anchors_[count_ - 2], anchors_[count_ - 1], now.theirs);
    error_ = std::max(error_, distance(now.ticks, put));
  }
  if (count_ == kMost) {  // the first one and the newest stay; in between evenly thinned out
    for (size_t i = 1; i < kMost / 2; ++i) anchors_[i] = anchors_[i * 2];
    anchors_[kMost / 2] = anchors_[kMost - 1];
    count_ = kMost / 2 + 1;
  }
  anchors_[count_++] = now;
}

uint64_t CuptiClock::expected(const Anchor& from, const Anchor& to, uint64_t time) const {
  const double slope =
      signed_distance(from.ticks, to.ticks) / signed_distance(from.theirs, to.theirs);
  const double since = signed_distance(to.theirs, time);
  return to.ticks + static_cast<uint64_t>(static_cast<int64_t>(since * slope));
}

uint64_t CuptiClock::to_ticks(uint64_t time) const {
  if (count_ < 2) return 0;
  size_t right = count_ - 1;
  while (right > 1 && anchors_[right - 1].theirs > time) --right;
  return expected(anchors_[right - 1], anchors_[right], time);
}

}  // namespace gpuprof
