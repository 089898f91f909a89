// SPDX-License-Identifier: Apache-2.0
#include "collector/samples/processor_waits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/samples/differences.h"
#include "formats/core/counters.h"

namespace gpuprof {

constinit std::atomic<int64_t> g_silence_ticks{INT64_MAX};

namespace {

constexpr double kSilenceNs = 1e6;
constexpr uint64_t kLongestSilenceS = 60;  // more is no time of the record before
constexpr double kBetweenSteps = 5e6;      // ns between two looks into the file at short steps

struct Reading {
  uint64_t begin;  // ticks: since when the thread was silent; 0: not known
  uint64_t wait_ns;
  uint32_t thread;
  std::atomic<uint64_t> end;  // ticks; 0: not written yet
};
constexpr uint64_t kReadings = 4096;  // between two looks of the drain thread; more are left out
constinit Reading g_readings[kReadings]{};
constinit std::atomic<uint64_t> g_head{0}, g_tail{0};

// The first readings of threads are where their counts begin.
struct Known {
  uint32_t thread;
  uint64_t end, wait_ns;
};
constexpr size_t kThreads = 16;
Known g_known[kThreads];  // drain thread
size_t g_known_count = 0;

// What the calling thread read last. Small: of each thread's stack.
struct LastReading {
  uint64_t wait_ns;
  uint32_t switches;  // before it
  uint32_t moment;    // of the look into the file; 0: none
};
// Odd, hence not 0.
uint32_t moment_of(uint64_t ticks) { return static_cast<uint32_t>(ticks >> 16) | 1; }
constinit thread_local LastReading t_last __attribute__((tls_model("initial-exec"))) = {};

// How often the calling thread has left its processor: while that stands, so does its wait. A
// kernel that does not count has 0.
bool count_switches(uint32_t& switches) {
  rusage usage{};
  if (::syscall(SYS_getrusage, RUSAGE_THREAD, &usage) != 0) return false;
  switches = static_cast<uint32_t>(usage.ru_nvcsw + usage.ru_nivcsw);
  return switches > 0;
}

// "RUN WAIT SLICES", ns; a kernel that does not count has zeros. On the program's thread: by system
// calls, since open(2) and read(2) are where a thread is cancelled, and others may have them.
bool read_file(uint64_t& wait_ns) {
  const ForkWaitsScope forks_wait;
  const auto file = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  if (file < 0) return false;
  char text[96];
  const long got = ::syscall(SYS_read, file, text, sizeof text - 1);
  ::syscall(SYS_close, file);
  if (got <= 0) return false;
  text[got] = '\0';
  char* after = nullptr;
  const uint64_t run_ns = std::strtoull(text, &after, 10);
  wait_ns = std::strtoull(after, nullptr, 10);
  return run_ns > 0;
}

// At a step that is not the window's first nor last, the file is left alone where it was read
// `between` ticks ago or less: false.
bool read_wait(uint64_t ticks, uint64_t between, uint64_t& wait_ns) {
  uint32_t switches = 0;
  const bool counted = count_switches(switches);
  if (t_last.moment && counted && switches == t_last.switches) {
    wait_ns = t_last.wait_ns;
    return true;
  }
  const uint32_t since = moment_of(ticks) - t_last.moment;
  if (t_last.moment && since < between >> 16) return false;
  if (!read_file(wait_ns)) {
    g_silence_ticks.store(INT64_MAX, std::memory_order_relaxed);
    return false;
  }
  t_last = {wait_ns, switches, counted ? moment_of(ticks) : 0};
  return true;
}

void note(uint64_t begin, uint64_t end, uint64_t between) {
  if (a_fork_runs()) return;
  uint64_t wait_ns = 0;
  if (!read_wait(end, between, wait_ns)) return;
  uint64_t at = g_head.load(std::memory_order_relaxed);
  do {
    if (at - g_tail.load(std::memory_order_acquire) >= kReadings) return;
  } while (!g_head.compare_exchange_weak(at, at + 1, std::memory_order_relaxed));
  Reading& place = g_readings[at % kReadings];
  place.begin = begin;
  place.wait_ns = wait_ns;
  place.thread = current_tid();
  place.end.store(end, std::memory_order_release);
}

Known* known(uint32_t thread) {
  for (size_t i = 0; i < g_known_count; ++i) {
    if (g_known[i].thread == thread) return &g_known[i];
  }
  if (g_known_count == kThreads) return nullptr;
  g_known[g_known_count] = {thread, 0, 0};
  return &g_known[g_known_count++];
}

}  // namespace

void note_silence(uint64_t begin, uint64_t end) {
  const ErrnoGuard keep_errno;
  const auto longest = static_cast<uint64_t>(kLongestSilenceS * 1e9 * session().clock.ticks_per_ns);
  note(begin > end || end - begin > longest ? 0 : begin, end, 0);
}

void note_processor_wait(uint64_t ticks, bool within) {
  if (g_silence_ticks.load(std::memory_order_relaxed) == INT64_MAX) return;
  const auto between = static_cast<uint64_t>(kBetweenSteps * session().clock.ticks_per_ns);
  note(0, ticks, within ? between : 0);
}

void processor_waits_begin() {
  g_known_count = 0;
  g_silence_ticks.store(static_cast<int64_t>(kSilenceNs * session().clock.ticks_per_ns),
                        std::memory_order_relaxed);
}

bool encode_processor_waits(ByteBuffer& out, uint32_t clock_shift) {
  struct Series {
    Differences times, values;
  };
  Series series[kThreads];
  uint64_t at = g_tail.load(std::memory_order_relaxed);
  bool any = false;
  for (; at != g_head.load(std::memory_order_acquire); ++at) {
    Reading& reading = g_readings[at % kReadings];
    const uint64_t end = reading.end.exchange(0, std::memory_order_acquire);
    if (end == 0) break;  // is being written
    Known* const thread = known(reading.thread);
    if (!thread || end <= thread->end) continue;
    Series& own = series[thread - g_known];
    // All of it lies in the silence, as far as is known.
    if (thread->end && reading.begin > thread->end) {
      own.times.add(reading.begin >> clock_shift);
      own.values.add(thread->wait_ns);
    }
    own.times.add(end >> clock_shift);
    own.values.add(reading.wait_ns);
    thread->end = end;
    thread->wait_ns = reading.wait_ns;
    any = true;
  }
  g_tail.store(at, std::memory_order_release);
  if (!any) return false;
  WireWriter wire(out);
  for (size_t i = 0; i < g_known_count; ++i) {
    if (series[i].times.empty()) continue;
    const size_t mark = wire.open(1);
    wire.uint(1, g_known[i].thread);
    wire.uint(2, static_cast<uint64_t>(Counter::processor_wait));
    series[i].times.write(wire, 3);
    series[i].values.write(wire, 4);
    wire.close(mark);
  }
  return wire.ok();
}

namespace {
void forget_processor_waits() {
  g_silence_ticks.store(INT64_MAX, std::memory_order_relaxed);
  g_tail.store(g_head.load());
  for (Reading& reading : g_readings) reading.end.store(0);
  g_known_count = 0;
  t_last = {};
}
GPUPROF_FORGET_IN_CHILD(forget_processor_waits);
}  // namespace

}  // namespace gpuprof
