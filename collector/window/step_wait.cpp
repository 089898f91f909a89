// SPDX-License-Identifier: Apache-2.0
#include "collector/window/step_wait.h"

#include <algorithm>

#include "collector/record/session.h"
#include "collector/window/window_begin_end.h"

namespace gpuprof {
namespace {

constexpr double kPatienceSeconds = 30, kLongestSeconds = 300;
constexpr double kWatchSeconds = 10;  // of these, the last

void watch(bool on) {
  Session& s = session();
  if (s.watches_work.load(std::memory_order_relaxed) == on) return;
  s.works.store(false, std::memory_order_relaxed);
  s.watches_work.store(on, std::memory_order_relaxed);
  apply_hook_flags();
}

}  // namespace

bool waited_in_vain(uint64_t ticks) {
  Session& s = session();
  const uint64_t begin = std::max({s.start_ticks, s.looking_ticks, s.tracker.last_sign()});
  const uint64_t since = std::max(begin, s.idle_until_ticks);
  if (ticks < since) return false;  // a mark after this look
  const double waited = seconds_between(since, ticks);
  const bool ends = waited >= kPatienceSeconds;
  const bool watched = s.watches_work.load(std::memory_order_relaxed);
  watch(waited >= kPatienceSeconds - kWatchSeconds);
  if (!ends || !watched) return false;
  const bool longest = seconds_between(begin, ticks) >= kLongestSeconds;
  const bool works = s.works.load(std::memory_order_relaxed);
  if (!longest && (!works || s.is_idle)) {
    // Work that comes now may have marks: they have their time.
    if (works) s.idle_until_ticks = ticks;
    s.is_idle = !works;
    return false;
  }
  s.is_idle = false;
  watch(false);
  return true;
}

void stop_watching() { watch(false); }

}  // namespace gpuprof
