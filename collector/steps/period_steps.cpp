// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/period_steps.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "formats/core/interned.h"
#include "formats/core/period/period.h"

namespace gpuprof {
namespace {

constexpr uint64_t kSlots = 1 << 17;  // a dozen steps of the longest that are usual
constexpr uint64_t kFirstLook = 512;  // launches
constexpr uint64_t kFirstLookNs = 1000000000;
// After a look, for each launch: a look costs 2 to 7 us for each, and there may be nothing to find.
constexpr uint64_t kPauseNs = 130'000;
constexpr double kSure = 0.6;
// Layers repeat, too: a period that may be one of many is taken after many of them only.
constexpr size_t kUnsureSteps = 20;
constexpr double kUnsureLength = 100;
constexpr double kStillThere = 0.75;  // of what was looked at
// A step that comes again only after so many has ended; evaluation may stand between two.
constexpr double kLostAfter = 32;

struct Anchor {
  std::atomic<uint64_t> subjects[StepAnchor::kMost];
  std::atomic<uint32_t> count{0};  // 0: none is known
  std::atomic<uint32_t> apart{0};
};

using Slot = std::atomic<uint64_t>;

constinit std::atomic<Slot*> g_launches{nullptr};  // the newest kSlots, by position
constinit std::atomic<uint64_t> g_position{0};     // of the next launch
constinit std::atomic<uint64_t> g_anchored{0};     // where the anchor was seen last
constinit Anchor g_anchor;
constinit std::atomic<uint32_t> g_looks{0};

// Of the drain thread.
struct Search {
  uint64_t from = 0;       // what was launched before does not count
  uint64_t next_look = 0;  // position
  uint64_t next_look_ns = 0;
  double length = 0;  // of the step that was found, or is to be confirmed
};
constinit Search g_search;

bool matches(const Slot* launches, uint64_t position, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t subject =
        launches[(position - (count - 1 - i)) % kSlots].load(std::memory_order_relaxed);
    if (subject != g_anchor.subjects[i].load(std::memory_order_relaxed)) return false;
  }
  return true;
}

// The launches since `from`, as far as there is room for them, numbered. False: no memory.
bool copy_launches(uint64_t end, PodVector<uint32_t>& out, Interned<uint64_t>& subjects) {
  const Slot* const launches = g_launches.load(std::memory_order_acquire);
  const uint64_t begin = std::max(g_search.from, end > kSlots ? end - kSlots : 0);
  if (!out.resize(end - begin)) return false;
  for (uint64_t i = begin; i < end; ++i) {
    out[i - begin] = subjects.position_of(launches[i % kSlots].load(std::memory_order_relaxed));
    if (out[i - begin] == kNoPosition) return false;
  }
  return true;
}

// Of the last so many launches.
bool believable(const Period& period, size_t launches) {
  if (period.anchor.count == 0 || period.confidence < kLeastConfidence) return false;
  // What repeated and is over is not what steps repeat, though it may be most that there was.
  if (static_cast<double>(period.begins[period.begins.size() - 1]) <
      kStillThere * static_cast<double>(launches)) {
    return false;
  }
  return period.confidence >= kSure ||
         (period.begins.size() >= kUnsureSteps && period.length >= kUnsureLength);
}

void take_anchor(const StepAnchor& anchor, const Interned<uint64_t>& subjects, uint64_t position) {
  for (uint32_t i = 0; i < anchor.count; ++i) {
    g_anchor.subjects[i].store(subjects.begin()[anchor.kernels[i]], std::memory_order_relaxed);
  }
  g_anchor.apart.store(anchor.apart, std::memory_order_relaxed);
  // In the middle of a burst is no begin.
  g_anchored.store(position, std::memory_order_relaxed);
  g_anchor.count.store(anchor.count, std::memory_order_release);
}

// Whether the steps that are known come no more.
bool lost(uint64_t position) {
  const uint64_t seen = g_anchored.load(std::memory_order_relaxed);
  return position > seen && static_cast<double>(position - seen) > kLostAfter * g_search.length;
}

}  // namespace

void period_begin() {
  g_anchor.count.store(0);
  g_position.store(0);
  g_looks.store(0);
  g_search = Search{};
  if (g_launches.load()) return;
  void* const memory = ::mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) g_launches.store(static_cast<Slot*>(memory), std::memory_order_release);
}

bool period_launch(uint64_t subject) {
  Slot* const launches = g_launches.load(std::memory_order_acquire);
  if (!launches) return false;
  const uint64_t position = g_position.fetch_add(1, std::memory_order_relaxed);
  launches[position % kSlots].store(subject, std::memory_order_relaxed);
  const uint32_t count = g_anchor.count.load(std::memory_order_acquire);
  if (count == 0 || !matches(launches, position, count)) return false;
  const uint64_t before = g_anchored.exchange(position, std::memory_order_relaxed);
  // Of two at the same moment the later one may come first.
  return position > before && position - before >= g_anchor.apart.load(std::memory_order_relaxed);
}

uint32_t period_looks() { return g_looks.load(std::memory_order_relaxed); }

bool period_look(uint64_t now_ns, FoundSteps& out) {
  Search& search = g_search;
  const uint64_t position = g_position.load(std::memory_order_acquire);
  if (g_anchor.count.load(std::memory_order_relaxed) != 0) {
    if (!lost(position)) return false;
    g_anchor.count.store(0, std::memory_order_release);
    search = Search{};
    search.from = position;
  }
  if (search.next_look_ns == 0) {
    if (position == search.from) return false;
    search.next_look_ns = now_ns + kFirstLookNs;
    search.next_look = search.from + kFirstLook;
  }
  if (position < search.next_look || now_ns < search.next_look_ns) return false;
  search.next_look = position + std::min(position - search.from, kSlots / 2);
  PodVector<uint32_t> launches;
  Interned<uint64_t> subjects;
  Period period;
  g_looks.fetch_add(1, std::memory_order_relaxed);
  const bool looked = copy_launches(position, launches, subjects) &&
                      find_period(launches.data(), launches.size(), period);
  search.next_look_ns = now_ns + kPauseNs * launches.size();
  if (!looked) return false;
  const double before = search.length;
  search.length = believable(period, launches.size()) ? period.length : 0;
  // The same at two looks: what repeats in a part of the first step is not what steps repeat.
  if (search.length == 0 || search.length > 1.1 * before || before > 1.1 * search.length) {
    return false;
  }
  take_anchor(period.anchor, subjects, position);
  out = {period.confidence, period.length};
  return true;
}

}  // namespace gpuprof
