// SPDX-License-Identifier: Apache-2.0
#include "collector/samples/thread_times.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/samples/differences.h"
#include "formats/core/counters.h"

namespace gpuprof {
namespace {

struct Reading {
  uint64_t ticks, running_ns, waiting_ns;
  uint32_t thread;
};
// Between two looks of the drain thread, which come once a second or more often: 16 threads, 200
// readings a second. What finds no room is left out, and lies between the readings around it.
constexpr uint64_t kReadings = 8192;
constexpr size_t kThreads = 64;
constinit Reading g_readings[kReadings]{};
constinit std::atomic<uint64_t> g_head{0}, g_tail{0};

}  // namespace

void note_thread_times(uint32_t tid) {
  char path[64], text[96];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
  const uint64_t at = g_head.load(std::memory_order_relaxed);
  if (at - g_tail.load(std::memory_order_acquire) >= kReadings) return;
  const uint64_t ticks = now_ticks();
  // "RUNNING WAITING SLICES", ns; a kernel that does not count has zeros.
  if (!read_small_file(path, text, sizeof text)) return;
  char* after = nullptr;
  const uint64_t running_ns = std::strtoull(text, &after, 10);
  const uint64_t waiting_ns = std::strtoull(after, nullptr, 10);
  if (running_ns == 0) return;
  g_readings[at % kReadings] = {ticks, running_ns, waiting_ns, tid};
  g_head.store(at + 1, std::memory_order_release);
}

bool encode_thread_times(ByteBuffer& out, uint32_t clock_shift) {
  const uint64_t head = g_head.load(std::memory_order_acquire);
  const uint64_t tail = g_tail.load(std::memory_order_relaxed);
  if (head == tail) return false;
  uint32_t threads[kThreads];
  size_t count = 0;
  for (uint64_t at = tail; at != head; ++at) {
    const uint32_t thread = g_readings[at % kReadings].thread;
    size_t known = 0;
    while (known < count && threads[known] != thread) ++known;
    if (known == count && count < kThreads) threads[count++] = thread;
  }
  WireWriter wire(out);
  const auto write = [&](uint32_t thread, Counter counter, uint64_t Reading::*value) {
    Differences times, values;
    for (uint64_t at = tail; at != head; ++at) {
      const Reading& reading = g_readings[at % kReadings];
      if (reading.thread != thread) continue;
      times.add(reading.ticks >> clock_shift);
      values.add(reading.*value);
    }
    const size_t mark = wire.open(1);
    wire.uint(1, thread);
    wire.uint(2, static_cast<uint64_t>(counter));
    times.write(wire, 3);
    values.write(wire, 4);
    wire.close(mark);
  };
  for (size_t i = 0; i < count; ++i) {
    write(threads[i], Counter::thread_running, &Reading::running_ns);
    write(threads[i], Counter::thread_waiting, &Reading::waiting_ns);
  }
  g_tail.store(head, std::memory_order_release);
  return wire.ok();
}

namespace {
void forget_thread_times() { g_tail.store(g_head.load()); }
GPUPROF_FORGET_IN_CHILD(forget_thread_times);
}  // namespace

}  // namespace gpuprof
