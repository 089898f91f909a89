// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_times.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/collector.h"
#include "collector/record/recorder.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/sources/event_contexts.h"
#include "collector/sources/event_driver.h"
#include "collector/sources/event_pool.h"
#include "collector/sources/event_work.h"
#include "collector/sources/graphs.h"

namespace gpuprof {
namespace {

constexpr uint64_t kReadEveryNs = 100000000;
constexpr uint64_t kResolutionNs = 500;  // cuEventElapsedTime: "around 0.5 microseconds"

// GPU work whose times are the device's still.
struct Work {
  Record record;
  uint64_t call_begin;
  uint16_t context;
};

struct State {
  EventPool pool;
  PodVector<Work> work;
  PodVector<uint32_t> ended;
  PodVector<uint32_t> lost;  // numbers of launches that will have no time
};
constinit Immortal<State> g;
std::atomic<bool> g_ready{false};
std::atomic<uint32_t> g_number{0};
bool g_registered_exit = false;
uint64_t g_last_reading_ns = 0;
uint64_t g_error_ticks = 0;
char g_missing[128] = "";

uint64_t to_ticks(uint64_t ns) {
  return static_cast<uint64_t>(static_cast<double>(ns) * session().clock.ticks_per_ns);
}

bool make_events(const EventDriver& driver, EventPair& pair) {
  if (pair.begin) return true;
  const RelaxedCapture relaxed(driver);
  if (driver.create(&pair.begin, 0) != 0) return pair.begin = nullptr, false;
  if (driver.create(&pair.end, 0) == 0) return true;
  driver.destroy(pair.begin);
  pair.begin = pair.end = nullptr;
  return false;
}

// Held while a hook asks for the state of an event that it has not taken, and while events are
// destroyed. A hook does not wait for it.
Mutex g_asking;

// Whether the GPU has come to pairs of a stream since it was last known to: these are no more in
// it.
bool stream_moves(const EventDriver& driver, uint16_t context, uint64_t stream) {
  if (!g_asking.try_lock()) return false;
  const RelaxedCapture relaxed(driver);
  const auto pass = [&](uint32_t pair) {
    if (pair == EventPool::kNone || driver.query(g->pool[pair].end) != 0) return false;
    g->pool.pass(pair);
    return true;
  };
  bool moves = pass(g->pool.waiting(context, stream).last);
  while (pass(g->pool.waiting(context, stream).first)) moves = true;
  g_asking.unlock();
  return moves;
}

void destroy_events(const EventDriver& driver, uint32_t number) {
  const LockGuard guard(g_asking);
  EventPair& pair = g->pool[number];
  if (pair.begin) driver.destroy(pair.begin);
  if (pair.end) driver.destroy(pair.end);
  g->pool.give_back_without(number);
}

// Records the first event of a pair; kNoEvents: the call has no time.
uint32_t begin_pair(const EventDriver& driver, const Record& record, bool own, uint16_t context) {
  const uint64_t stream = stream_of(record);
  unsigned long long id = 0;
  if (driver.stream_id[own](stream, &id) != 0) return kNoEvents;
  uint32_t number = g->pool.take(context, id, false);
  if (number == EventPool::kFull && stream_moves(driver, context, id)) {
    number = g->pool.take(context, id, true);
  }
  if (number == EventPool::kNone || number == EventPool::kFull) return kNoEvents;
  EventPair& pair = g->pool[number];
  if (!make_events(driver, pair)) {
    g->pool.give_back_without(number);
    return kNoEvents;
  }
  if (driver.record[own](pair.begin, stream) == 0) return number;
  if (!g->pool.give_back(number)) destroy_events(driver, number);
  return kNoEvents;
}

}  // namespace

bool event_times_wanted() { return session().config.gpu_times == GpuTimes::events; }

uint32_t events_before(const Record& record) {
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  const bool in_window = window_is_open();
  if (!g_ready.load(std::memory_order_acquire)) return kNoEvents;
  const EventDriver* const driver = event_driver();
  const ContextOfCall current(*driver, record);
  const int context = place_of_context(*driver, current.handle());
  if (!in_window) return kNoEvents;
  const bool own = has_own_stream(record.api);
  int status = 0;
  // Of the legacy stream it is an error while a stream is captured that would wait for it.
  if (context < 0 || driver->is_capturing[own](stream_of(record), &status) != 0) {
    count_loss(Loss::event_untimed);
    return kNoEvents;
  }
  if (status != 0) {
    count_loss(Loss::event_captured);
    return kNoEvents;
  }
  const uint32_t pair = begin_pair(*driver, record, own, static_cast<uint16_t>(context));
  if (pair == kNoEvents) count_loss(Loss::event_untimed);
  return pair;
}

void events_after(uint32_t number, Record& record) {
  if (number == kNoEvents) return;
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  const EventDriver& driver = *event_driver();
  EventPair& pair = g->pool[number];
  const bool launched = result_of(record) == 0;
  if (launched && driver.record[has_own_stream(record.api)](pair.end, stream_of(record)) == 0) {
    uint32_t id = 0;
    while (id == 0) id = g_number.fetch_add(1, std::memory_order_relaxed) + 1;
    record.correlation = id;
    pair.record = record;
    if (g->pool.hand_over(number)) return;
    record.correlation = 0;
  } else if (g->pool.give_back(number)) {
    if (launched) count_loss(Loss::event_untimed);
    return;
  }
  destroy_events(driver, number);  // the window ended meanwhile
  if (launched) count_loss(Loss::event_untimed);
}

bool event_times_attach() {
  if (g_ready.load(std::memory_order_relaxed)) return true;
  const char* lacks = "";
  g_missing[0] = '\0';
  if (!event_driver(&lacks)) {
    std::snprintf(g_missing, sizeof g_missing,
                  "CUDA's driver has no %s, which times by events need (CUDA 12.0)", lacks);
  } else if (!g->pool.prepare()) {
    std::snprintf(g_missing, sizeof g_missing, "no memory for CUDA events");
  }
  if (g_missing[0]) {
    log_line(LogLevel::warn, "no GPU times: %s", g_missing);
    return false;
  }
  // As of CUPTI's attach: before the driver's own handlers.
  if (!g_registered_exit) ::atexit([] { finish_session("exit"); });
  g_registered_exit = true;
  g_error_ticks = 0;
  g_ready.store(true, std::memory_order_release);
  return true;
}

bool event_times_are_ready() { return g_ready.load(std::memory_order_relaxed); }

namespace {

void read_clock(const EventDriver& driver, EventContext& context) {
  context.clock.read(driver, session().clock.ticks_per_ns);
  g_error_ticks = std::max(g_error_ticks, context.clock.error_ticks());
}

// Once counted here, the launch is none that the window's end misses.
void lose(uint32_t id) {
  count_loss(Loss::event_untimed);
  (void)g->lost.push_back(id);
}

// Reads the times of a pair whose second event has happened.
void read_pair(const EventDriver& driver, const EventPair& pair, const EventContext& context) {
  const Record& call = pair.record;
  Work work{gpu_work_of(call, pair.stream, context.device, context.id), call.begin, pair.context};
  float ms = 0;
  if (driver.elapsed(&ms, pair.begin, pair.end) != 0 ||
      !context.clock.device_ns(driver, pair.begin, call.begin, work.record.begin) ||
      !g->work.push_back(work)) {
    lose(call.correlation);
    return;
  }
  Work& kept = g->work[g->work.size() - 1];
  const auto ns = static_cast<int64_t>(static_cast<double>(ms) * 1e6 + 0.5);
  kept.record.end = kept.record.begin + static_cast<uint64_t>(std::max<int64_t>(ns, 0));
}

// Those of one context that are over, once there is a clock to read them by.
void read_pairs(const EventDriver& driver, uint16_t place) {
  EventContext& context = event_context(place);
  const bool there = enter_context(driver, context);
  uint64_t running[64];  // streams whose work is not over
  size_t count = 0;
  for (uint32_t& number : g->pool.recorded()) {
    const EventPair& pair = g->pool[number];
    if (pair.context != place) continue;
    if (there && std::find(running, running + count, pair.stream) != running + count) continue;
    const int result = there ? driver.query(pair.end) : 0;
    if (result == EventDriver::kNotReady || (there && result == 0 && !context.clock.is_ready())) {
      if (count < 64) running[count++] = pair.stream;
      continue;
    }
    if (there && result == 0) {
      read_pair(driver, pair, context);
    } else {
      // After an illegal address, say, "any further CUDA work will return the same error" (CUDA
      // driver API, CUDA_ERROR_ILLEGAL_ADDRESS).
      context.gone = true;
      lose(pair.record.correlation);
    }
    const uint32_t done = number;
    number = EventPool::kNone;
    if (there) {
      g->pool.give_back(done);
    } else {
      g->pool.give_back_without(done);
    }
  }
  g->pool.forget_read();
}

// Of contexts that are gone: their pairs and places are others' then.
void clear_places(const EventDriver& driver) {
  const uint32_t contexts = event_context_count();
  for (uint16_t i = 0; i < contexts; ++i) {
    const EventContext& context = event_context(i);
    if (!context.gone) continue;
    g->pool.forget_free(i);
    const bool waits = std::any_of(g->work.begin(), g->work.end(),
                                   [i](const Work& each) { return each.context == i; });
    if (!waits && !g->pool.uses(i)) vacate_context(driver, i);
  }
}

// To the ring, all whose context has readings of the clocks that they lie near. At last the others,
// too.
void write_work(bool at_last) {
  const GpuBufferScope gpu_buffer;
  const uint64_t end_ticks = ring()->header->window_end_ticks.load(std::memory_order_acquire);
  size_t kept = 0;
  for (Work& each : g->work) {
    const EventClock& clock = event_context(each.context).clock;
    const double stretch = clock.stretch(each.record.begin);
    const bool waits = !clock.is_known() || (stretch > 1 && !at_last);
    if (!event_context(each.context).gone && waits) {
      g->work[kept++] = each;
      continue;
    }
    // Its call was on the way when the window ended, and is none of it.
    if (end_ticks && each.call_begin >= end_ticks) continue;
    if (!clock.is_known()) {
      lose(each.record.correlation);
      continue;
    }
    if (stretch > 1) g_error_ticks = std::max(g_error_ticks, clock.error_ticks(stretch));
    Record* const record = reserve_record();
    if (!record) continue;
    *record = each.record;
    // What the stream had to wait for the call itself is none of the work's.
    record->begin = std::max(clock.to_ticks(each.record.begin), each.call_begin);
    record->end = std::max(clock.to_ticks(each.record.end), record->begin);
    commit_record(record);
  }
  g->work.truncate(kept);
}

void look(bool read_clocks, bool at_last = false) {
  if (!g_ready.load(std::memory_order_relaxed)) return;
  const EventDriver& driver = *event_driver();
  const uint32_t contexts = event_context_count();
  if (contexts == 0) return;
  const RelaxedCapture relaxed(driver);
  for (uint16_t i = 0; i < contexts; ++i) {
    EventContext& context = event_context(i);
    if (!enter_context(driver, context)) continue;
    if (!context.clock.is_known()) read_clock(driver, context);
  }
  for (uint16_t i = 0; i < contexts; ++i) read_pairs(driver, i);
  if (read_clocks) {
    // Behind what was read just now.
    for (uint16_t i = 0; i < contexts; ++i) {
      if (enter_context(driver, event_context(i))) read_clock(driver, event_context(i));
    }
    write_work(at_last);
  }
  clear_places(driver);
  driver.set_context(nullptr);
}

}  // namespace

void event_times_tick() {
  const uint64_t now_ns = monotonic_ns();
  const bool due = now_ns - g_last_reading_ns >= kReadEveryNs;
  if (due) g_last_reading_ns = now_ns;
  look(due);
}

void event_times_collect(bool at_last) { look(true, at_last); }

bool event_times_await() {
  if (!g_ready.load(std::memory_order_relaxed)) return false;
  return g->pool.recorded().size() != 0 || g->work.size() != 0;
}

void event_times_take_lost(void (*take)(void* context, uint32_t id), void* context) {
  for (const uint32_t id : g->lost) take(context, id);
  g->lost.clear();
}

uint64_t event_times_left(bool (*is_awaited)(const void* context, uint32_t id),
                          const void* context) {
  if (!g_ready.load(std::memory_order_relaxed)) return 0;
  const uint64_t end_ticks = ring()->header->window_end_ticks.load(std::memory_order_acquire);
  const auto counts = [&](uint64_t call_begin, uint32_t id) {
    return !(end_ticks && call_begin >= end_ticks) && !is_awaited(context, id);
  };
  uint64_t left = 0;
  for (const uint32_t number : g->pool.recorded()) {
    const Record& call = g->pool[number].record;
    left += counts(call.begin, call.correlation);
  }
  for (const Work& each : g->work) left += counts(each.call_begin, each.record.correlation);
  return left;
}

void event_times_end() {
  if (!g_ready.exchange(false)) return;
  const EventDriver& driver = *event_driver();
  const RelaxedCapture relaxed(driver);
  g->ended.clear();
  if (!g->ended.reserve(EventPool::kMostPairs)) return;
  g->pool.end(g->ended);
  const uint32_t contexts = event_context_count();
  for (uint16_t i = 0; i < contexts; ++i) {
    EventContext& context = event_context(i);
    const bool there = enter_context(driver, context);
    for (const uint32_t number : g->ended) {
      if (g->pool[number].context != i) continue;
      if (there) {
        destroy_events(driver, number);
      } else {
        g->pool.give_back_without(number);
      }
    }
    if (there) context.clock.end(driver);
  }
  if (contexts) driver.set_context(nullptr);
  g->work.clear();
  g->lost.clear();
  clear_places(driver);
}

const char* event_times_missing() { return g_missing; }

uint64_t event_times_error_ticks() {
  return g_error_ticks ? g_error_ticks + to_ticks(kResolutionNs) : 0;
}

namespace {
void forget_event_times() {
  g_asking.unlock();
  g_ready = false;
  g_number = 0;
  g_last_reading_ns = g_error_ticks = 0;
  g_registered_exit = false;
  g_missing[0] = '\0';
  g->work.release();
  g->ended.release();
  g->lost.release();
  g->pool.release();
}
GPUPROF_FORGET_IN_CHILD(forget_event_times);
}  // namespace

}  // namespace gpuprof
