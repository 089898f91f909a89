// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_clock.h"

#include <utility>

#include "collector/base/clock.h"

namespace gpuprof {
namespace {

constexpr uint64_t kFirstNs = 1000000000000000;  // times of before the first reading are positive
constexpr uint64_t kLongestNs = 2000000;         // that a look waits for a reading
constexpr double kSpanNs = 20e6;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

int64_t to_ns(float ms) {
  return static_cast<int64_t>(static_cast<double>(ms) * 1e6 + (ms < 0 ? -0.5 : 0.5));
}

constexpr uint64_t kUnseen = ~uint64_t{0};  // the width of a reading that was over when looked at

}  // namespace

bool EventClock::prepare(const EventDriver& driver) {
  if (!stream_ && driver.create_stream(&stream_, kNonBlocking) != 0) stream_ = 0;
  for (void** const event : {&reference_, &next_}) {
    if (!*event && driver.create(event, 0) != 0) *event = nullptr;
  }
  return stream_ && reference_ && next_;
}

// Whether `next_`, recorded now or at an earlier look, has happened: `anchor` has our clock's side.
// It happened between the last query that did not find it done and the one that did.
bool EventClock::wait_for_next(const EventDriver& driver, AnchoredClock::Anchor& anchor) {
  const uint64_t begun_ns = monotonic_ns();
  uint64_t before = now_ticks();
  bool seen = !pending_;
  if (!pending_ && driver.record[0](next_, stream_) != 0) return false;
  pending_ = true;
  for (;;) {
    const uint64_t asked = now_ticks();
    const int result = driver.query(next_);
    if (result == 0) break;
    pending_ = result == EventDriver::kNotReady;
    if (!pending_ || monotonic_ns() - begun_ns > kLongestNs) return false;
    before = asked;
    seen = true;
  }
  pending_ = false;
  const uint64_t after = now_ticks();
  anchor = {0, before + (after - before) / 2, seen ? after - before : kUnseen};
  return true;
}

// Of several tries the one that took least.
void EventClock::read(const EventDriver& driver, double ticks_per_ns) {
  if (!prepare(driver)) return;
  AnchoredClock::Anchor best{0, 0, kUnseen};
  for (int i = 0; i < 5; ++i) {
    AnchoredClock::Anchor now{};
    float ms = 0;
    if (!wait_for_next(driver, now)) break;
    if (ready_ && driver.elapsed(&ms, reference_, next_) != 0) break;
    now.theirs = ready_ ? reference_ns_ + static_cast<uint64_t>(to_ns(ms)) : kFirstNs;
    std::swap(reference_, next_);
    ready_ = true;
    reference_ns_ = now.theirs;
    reference_ticks_ = now.ticks;
    if (now.width < best.width) best = now;
  }
  if (best.width == kUnseen) return;
  if (clock_.anchors() == 0) {
    clock_.begin(best, ticks_per_ns);
    first_ticks_ = best.ticks;
    first_ns_ = newest_ns_ = best.theirs;
    return;
  }
  clock_.add(best);
  newest_ns_ = best.theirs;
  known_ = known_ || static_cast<double>(best.ticks - first_ticks_) > kSpanNs * ticks_per_ns;
}

void EventClock::end(const EventDriver& driver) {
  if (reference_) driver.destroy(reference_);
  if (next_) driver.destroy(next_);
  if (stream_) driver.destroy_stream(stream_);
  *this = EventClock();
}

void EventClock::lose_events() {
  reference_ = next_ = nullptr;
  stream_ = 0;
  pending_ = ready_ = false;
}

double EventClock::stretch(uint64_t device_ns) const {
  if (device_ns >= first_ns_ || newest_ns_ == first_ns_) return 0;
  return static_cast<double>(first_ns_ - device_ns) / static_cast<double>(newest_ns_ - first_ns_);
}

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
