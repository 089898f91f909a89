// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/open_ranges.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"

namespace gpuprof {

// The ranges that run on one thread, innermost last.
struct RangeThread {
  static constexpr uint32_t kDepth = 254;
  uint32_t depth;
  uint32_t beyond;        // ranges past kDepth, still open
  uint32_t news, window;  // that it knows of
  OpenRange open[kDepth];
};

const size_t kRangeThreadBytes = sizeof(RangeThread);

namespace {

// A range has ended on another thread than it began on, which has not taken note of it yet.
struct EndedElsewhere {
  const void* key;
  uint64_t end;
};
constexpr uint32_t kMostEnded = 1024;

Mutex g_lock;  // of the following three
EndedElsewhere g_ended[kMostEnded];
uint32_t g_ended_count = 0;
uint32_t g_window = 0;            // how many have begun
std::atomic<uint32_t> g_news{0};  // changes with these

RangeThread* this_thread() {
  if (t_state.ranges) return t_state.ranges;
  const ErrnoGuard keep_errno;
  void* const memory = ::mmap(nullptr, sizeof(RangeThread), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_state.ranges = static_cast<RangeThread*>(memory);
  release_at_thread_exit();
  return t_state.ranges;
}

void publish(const OpenRange& range, uint64_t end, uint8_t flags) {
  Record* const record = reserve_program_record(end);
  if (!record) return;
  begin_record(record, range.kind, range.begin, end, flags);
  record->framework = FrameworkPayload{};
  record->framework.name = range.name;
  record->framework.input_dims = range.input_dims;
  record->framework.input_types = range.input_types;
  record->framework.backward = range.backward;
  record->framework.sequence = range.sequence;
  commit_record(record);
}

// Whether a window is open, or just ends.
bool ranges_are_wanted() {
  const SessionPhase phase = session().phase.load(std::memory_order_relaxed);
  return phase == SessionPhase::active || phase == SessionPhase::closing;
}

void take_out(RangeThread& thread, uint32_t at) {
  OpenRange* const range = &thread.open[at];
  std::memmove(range, range + 1, (thread.depth - at - 1) * sizeof *range);
  --thread.depth;
}

// False: it goes on. The lock is held. An address may be used again: the first end after the begin.
bool take_end_of(const OpenRange& range, uint64_t& end) {
  for (uint32_t i = 0; i < g_ended_count; ++i) {
    if (g_ended[i].key != range.key || g_ended[i].end < range.begin) continue;
    end = g_ended[i].end;
    --g_ended_count;
    std::memmove(&g_ended[i], &g_ended[i + 1], (g_ended_count - i) * sizeof g_ended[i]);
    return true;
  }
  return false;
}

// What the last window left is forgotten, and what ended on other threads is recorded.
void take_news(RangeThread& thread) {
  const uint32_t news = g_news.load(std::memory_order_acquire);
  if (thread.news == news) return;
  thread.news = news;
  const LockGuard guard(g_lock);
  if (thread.window != g_window) thread.depth = thread.beyond = 0;
  thread.window = g_window;
  for (uint32_t at = 0; at < thread.depth && g_ended_count > 0;) {
    uint64_t end = 0;
    if (!take_end_of(thread.open[at], end)) {
      ++at;
      continue;
    }
    publish(thread.open[at], end, 0);
    take_out(thread, at);
  }
}

}  // namespace

OpenRange* open_range() {
  if (!window_is_open() || t_state.blocked || is_shed(ShedKind::operators)) return nullptr;
  RangeThread* const thread = this_thread();
  if (!thread) return nullptr;
  take_news(*thread);
  if (thread->depth == RangeThread::kDepth) {
    ++thread->beyond;
    count_loss(Loss::operator_depth);
    return nullptr;
  }
  OpenRange& range = thread->open[thread->depth++];
  range = OpenRange{};
  return &range;
}

const OpenRange* innermost_range(Kind kind) {
  const RangeThread* const thread = t_state.ranges;
  for (uint32_t at = thread ? thread->depth : 0; at > 0; --at) {
    if (thread->open[at - 1].kind == kind) return &thread->open[at - 1];
  }
  return nullptr;
}

bool close_range(const void* key) {
  RangeThread* const thread = t_state.ranges;
  if (!thread) return false;
  take_news(*thread);
  uint32_t at = thread->depth;
  while (at > 0 && thread->open[at - 1].key != key) --at;
  if (at-- == 0) {
    const bool is_beyond = thread->beyond > 0;
    thread->beyond -= is_beyond;
    return is_beyond;
  }
  const uint64_t end = now_ticks();
  const OpenRange range = thread->open[at];
  take_out(*thread, at);
  if (ranges_are_wanted()) publish(range, end, 0);
  return true;
}

void close_range_of_another(const void* key) {
  if (!ranges_are_wanted() || is_shed(ShedKind::operators)) return;
  const LockGuard guard(g_lock);
  if (g_ended_count == kMostEnded) {  // their threads have ended, or sleep: the older half goes
    g_ended_count /= 2;
    std::memmove(g_ended, g_ended + g_ended_count, g_ended_count * sizeof g_ended[0]);
  }
  g_ended[g_ended_count++] = {key, now_ticks()};
  g_news.fetch_add(1, std::memory_order_release);
}

void forget_ranges() {
  const LockGuard guard(g_lock);
  g_ended_count = 0;
  ++g_window;
  g_news.fetch_add(1, std::memory_order_release);
}

void cut_ranges(uint64_t ticks) {
  RangeThread* const thread = t_state.ranges;
  if (!thread) return;
  take_news(*thread);
  while (thread->depth > 0) {
    const OpenRange& range = thread->open[--thread->depth];
    if (range.begin < ticks) publish(range, ticks, kFlagOpenEnd);
  }
}

namespace {
void forget_parents_ranges() {
  g_lock.unlock();
  forget_ranges();
}
GPUPROF_FORGET_IN_CHILD(forget_parents_ranges);
}  // namespace

}  // namespace gpuprof
