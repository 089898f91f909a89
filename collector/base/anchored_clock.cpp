// SPDX-License-Identifier: Apache-2.0
#include "collector/base/anchored_clock.h"

#include <algorithm>

namespace gpuprof {
namespace {

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

double signed_distance(uint64_t from, uint64_t to) {
  return static_cast<double>(static_cast<int64_t>(to - from));
}

}  // namespace

void AnchoredClock::begin(const Anchor& first, double ticks_per_ns) {
  constexpr double kSpacingNs = 100e6;
  spacing_ = kSpacingNs * ticks_per_ns;
  anchors_[0] = first;
  count_ = 1;
  error_ = first.width / 2;
}

void AnchoredClock::add(const Anchor& now) {
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

uint64_t AnchoredClock::expected(const Anchor& from, const Anchor& to, uint64_t time) {
  const double slope =
      signed_distance(from.ticks, to.ticks) / signed_distance(from.theirs, to.theirs);
  const double since = signed_distance(to.theirs, time);
  return to.ticks + static_cast<uint64_t>(static_cast<int64_t>(since * slope));
}

uint64_t AnchoredClock::to_ticks(uint64_t time) const {
  if (count_ < 2) return 0;
  size_t right = count_ - 1;
  while (right > 1 && anchors_[right - 1].theirs > time) --right;
  return expected(anchors_[right - 1], anchors_[right], time);
}

}  // namespace gpuprof
