// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_clock.h"

#include <utility>

#include "collector/base/clock.h"

namespace gpuprof {
namespace {

constexpr uint64_t kFirstNs = 1000000000000000;  // times of before the first reading are positive
constexpr uint64_t kLongestNs = 2000000;         // that one reading may take
constexpr double kSpanNs = 20e6;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

int64_t to_ns(float ms) {
  return static_cast<int64_t>(static_cast<double>(ms) * 1e6 + (ms < 0 ? -0.5 : 0.5));
}

// Records `event` in an idle stream and waits until it has happened: `anchor` has our clock's side.
bool record_and_wait(const EventDriver& driver, void* event, uint64_t stream,
                     AnchoredClock::Anchor& anchor) {
  const uint64_t begun_ns = monotonic_ns();
  const uint64_t before = now_ticks();
  if (driver.record[0](event, stream) != 0) return false;
  int result = 0;
  while ((result = driver.query(event)) == EventDriver::kNotReady) {
    if (monotonic_ns() - begun_ns > kLongestNs) return false;
  }
  const uint64_t after = now_ticks();
  anchor = {0, before + (after - before) / 2, after - before};
  return result == 0;
}

}  // namespace

bool EventClock::begin(const EventDriver& driver, double ticks_per_ns) {
  if (driver.create_stream(&stream_, kNonBlocking) != 0) return stream_ = 0, false;
  if (driver.create(&reference_, 0) != 0) reference_ = nullptr;
  if (driver.create(&next_, 0) != 0) next_ = nullptr;
  AnchoredClock::Anchor first{};
  if (!reference_ || !next_ || !record_and_wait(driver, reference_, stream_, first)) {
    end(driver);
    return false;
  }
  reference_ns_ = kFirstNs;
  reference_ticks_ = first.ticks;
  if (!read(driver, first)) {
    end(driver);
    return false;
  }
  clock_.begin(first, ticks_per_ns);
  first_ticks_ = first.ticks;
  ticks_per_ns_ = ticks_per_ns;
  return true;
}

// Of several tries the one that took least.
bool EventClock::read(const EventDriver& driver, AnchoredClock::Anchor& best) {
  best = {0, 0, ~uint64_t{0}};
  for (int i = 0; i < 5; ++i) {
    AnchoredClock::Anchor now{};
    float ms = 0;
    if (!record_and_wait(driver, next_, stream_, now)) break;
    if (driver.elapsed(&ms, reference_, next_) != 0) break;
    now.theirs = reference_ns_ + static_cast<uint64_t>(to_ns(ms));
    std::swap(reference_, next_);
    reference_ns_ = now.theirs;
    reference_ticks_ = now.ticks;
    if (now.width < best.width) best = now;
  }
  return best.width != ~uint64_t{0};
}

bool EventClock::add(const EventDriver& driver) {
  AnchoredClock::Anchor now{};
  if (!read(driver, now)) return false;
  clock_.add(now);
  known_ = known_ || static_cast<double>(now.ticks - first_ticks_) > kSpanNs * ticks_per_ns_;
  return true;
}

void EventClock::end(const EventDriver& driver) {
  if (reference_) driver.destroy(reference_);
  if (next_) driver.destroy(next_);
  if (stream_) driver.destroy_stream(stream_);
  forget();
}

void EventClock::forget() { *this = EventClock(); }

bool EventClock::device_ns(const EventDriver& driver, void* event, uint64_t ticks,
                           uint64_t& out) const {
  // The earlier one first, as far as their records tell.
  const bool earlier = static_cast<int64_t>(ticks - reference_ticks_) < 0;
  float ms = 0;
  const int result =
      earlier ? driver.elapsed(&ms, event, reference_) : driver.elapsed(&ms, reference_, event);
  out = reference_ns_ + static_cast<uint64_t>(earlier ? -to_ns(ms) : to_ns(ms));
  return result == 0;
}

}  // namespace gpuprof
