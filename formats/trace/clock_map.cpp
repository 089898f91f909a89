// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/clock_map.h"

#include <algorithm>
#include <limits>

namespace gpuprof {
namespace {

__extension__ typedef __int128 Wide;

int64_t clamp(Wide value) {
  constexpr Wide kLow = std::numeric_limits<int64_t>::min() / 2;
  constexpr Wide kHigh = std::numeric_limits<int64_t>::max() / 2;
  return static_cast<int64_t>(std::clamp(value, kLow, kHigh));
}

// delta * by / over, rounded to nearest. |by| and `over` are below 2^63.
Wide scale(Wide delta, Wide by, Wide over) {
  const Wide product = delta * by;
  const Wide half = over / 2;
  return product >= 0 ? (product + half) / over : -((-product + half) / over);
}

Wide difference(uint64_t a, uint64_t b) { return static_cast<Wide>(a) - static_cast<Wide>(b); }

}  // namespace

ClockMap::ClockMap(std::vector<Anchor> anchors, uint32_t shift, uint64_t ticks_per_second)
    : shift_(std::min(shift, 63u)) {
  std::stable_sort(anchors.begin(), anchors.end(),
                   [](const Anchor& a, const Anchor& b) { return a.ticks < b.ticks; });
  for (const Anchor& anchor : anchors) {
    const bool plausible = anchor.ticks != 0 && anchor.monotonic_ns >= 0 && anchor.realtime_ns >= 0;
    if (!plausible) continue;
    if (!anchors_.empty() && (anchor.ticks == anchors_.back().ticks ||
                              anchor.monotonic_ns <= anchors_.back().monotonic_ns)) {
      continue;
    }
    anchors_.push_back(anchor);
  }
  if (anchors_.size() >= 2) {
    rate_ticks_ = anchors_.back().ticks - anchors_.front().ticks;
    rate_ns_ = static_cast<uint64_t>(anchors_.back().monotonic_ns - anchors_.front().monotonic_ns);
  } else if (ticks_per_second) {
    rate_ticks_ = ticks_per_second;
    rate_ns_ = 1'000'000'000;
  }
  usable_ = anchors_.size() >= 2 || (anchors_.size() == 1 && ticks_per_second != 0);
}

ClockMap ClockMap::from(const dump::Clock& clock) {
  std::vector<Anchor> anchors;
  for (const dump::ClockAnchor& anchor : clock.anchor()) {
    anchors.push_back({anchor.ticks(), static_cast<int64_t>(anchor.monotonic_ns()),
                       static_cast<int64_t>(anchor.realtime_ns())});
  }
  uint64_t rate = clock.ticks_per_second();
  if (rate == 0 && clock.source() == dump::CLOCK_SOURCE_MONOTONIC) rate = 1'000'000'000;
  return ClockMap(std::move(anchors), clock.shift(), rate);
}

int64_t ClockMap::monotonic_ns(uint64_t ticks) const {
  if (anchors_.empty()) return clamp(scale(static_cast<Wide>(ticks), rate_ns_, rate_ticks_));
  const Anchor &first = anchors_.front(), &last = anchors_.back();
  if (ticks <= first.ticks || ticks >= last.ticks) {
    const Anchor& from = ticks <= first.ticks ? first : last;
    return clamp(from.monotonic_ns + scale(difference(ticks, from.ticks), rate_ns_, rate_ticks_));
  }
  const auto after = std::upper_bound(anchors_.begin(), anchors_.end(), ticks,
                                      [](uint64_t t, const Anchor& a) { return t < a.ticks; });
  const Anchor &a = after[-1], &b = *after;
  return clamp(a.monotonic_ns + scale(difference(ticks, a.ticks), b.monotonic_ns - a.monotonic_ns,
                                      difference(b.ticks, a.ticks)));
}

void ClockMap::Cursor::find(uint64_t ticks) {
  constexpr uint64_t kExact = uint64_t{1} << 48;  // a double is off by less than one up to there
  first_ = ticks, end_ = ticks + 1, limit_ = 0;
  const std::vector<Anchor>& anchors = map_.anchors_;
  if (anchors.empty() || ticks < anchors.front().ticks) return;
  const auto after = std::upper_bound(anchors.begin(), anchors.end(), ticks,
                                      [](uint64_t t, const Anchor& a) { return t < a.ticks; });
  const Anchor& from = after[-1];
  if (after == anchors.end()) {
    by_ = map_.rate_ns_, over_ = map_.rate_ticks_;
    end_ = std::numeric_limits<uint64_t>::max();
  } else {
    by_ = static_cast<uint64_t>(after->monotonic_ns - from.monotonic_ns);
    over_ = after->ticks - from.ticks;
    end_ = after->ticks;
  }
  first_ = from.ticks;
  base_ = from.monotonic_ns;
  rate_ = static_cast<double>(by_) / static_cast<double>(over_);
  if (over_ < uint64_t{1} << 61 && base_ < int64_t{1} << 61) {
    limit_ = static_cast<uint64_t>(static_cast<double>(kExact) / std::max(rate_, 1.0));
  }
}

int64_t ClockMap::realtime_ns(uint64_t ticks) const {
  const int64_t monotonic = monotonic_ns(ticks);
  if (anchors_.empty()) return monotonic;
  const auto offset = [](const Anchor& a) { return Wide{a.realtime_ns} - a.monotonic_ns; };
  const Anchor &first = anchors_.front(), &last = anchors_.back();
  if (ticks <= first.ticks) return clamp(monotonic + offset(first));
  if (ticks >= last.ticks) return clamp(monotonic + offset(last));
  const auto after = std::upper_bound(anchors_.begin(), anchors_.end(), ticks,
                                      [](uint64_t t, const Anchor& a) { return t < a.ticks; });
  const Anchor &a = after[-1], &b = *after;
  return clamp(
      monotonic + offset(a) +
      scale(difference(ticks, a.ticks), offset(b) - offset(a), difference(b.ticks, a.ticks)));
}

}  // namespace gpuprof
