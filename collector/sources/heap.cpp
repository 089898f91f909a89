// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/heap.h"

#include <sys/mman.h>

#include <iterator>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/host.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/session.h"
#include "collector/stacks/stacks.h"
#include "formats/core/plain_math.h"

namespace gpuprof {

constinit std::atomic<bool> g_heap_on{false};
constinit std::atomic<uint8_t> g_heap_marks[kHeapMarks]{};

namespace {

constexpr const char* kNames[] = {"malloc",        "calloc",   "realloc", "free", "posix_memalign",
                                  "aligned_alloc", "memalign", "valloc",  "mmap", "munmap"};
static_assert(std::size(kNames) == kHeapCallCount);

constexpr uint64_t kSlots = 1 << 16;  // samples that can be live at a time; then they are losses

constinit LiveTable g_samples;
constinit std::atomic<uint64_t> g_draws{0};

// Exponentially distributed, at least 1.
int64_t draw_interval() {
  // A step of splitmix64; the counter is the state.
  uint64_t x = g_draws.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  const double uniform = static_cast<double>((x >> 11) + 1) * 0x1p-53;
  const double bytes = -logarithm_of(uniform) * static_cast<double>(session().config.heap_interval);
  return static_cast<int64_t>(bytes) + 1;
}

// An address stays marked where its count is at its end.
void mark(uint64_t address) {
  std::atomic<uint8_t>& count = heap_mark(reinterpret_cast<void*>(address));
  uint8_t now = count.load(std::memory_order_relaxed);
  while (now != UINT8_MAX && !count.compare_exchange_weak(now, now + 1)) {
  }
}

void unmark(uint64_t address) {
  std::atomic<uint8_t>& count = heap_mark(reinterpret_cast<void*>(address));
  uint8_t now = count.load(std::memory_order_relaxed);
  while (now != UINT8_MAX && now != 0 && !count.compare_exchange_weak(now, now - 1)) {
  }
}

void record(HeapCall call, uint64_t address, uint64_t bytes, bool released, uint64_t ticks) {
  const TakenStack stack = released ? TakenStack{} : take_heap_stack();
  const StringId name = intern_string(heap_call_name(call));
  Record* const out = reserve_record_after(stack, ticks, ticks);
  if (!out) return;
  *out = Record{};
  begin_record(out, Kind::heap, ticks, ticks);
  out->heap = {address, bytes, session().config.heap_interval, name, released};
  commit_record(out);
}

}  // namespace

const char* heap_call_name(HeapCall call) { return kNames[static_cast<size_t>(call)]; }

// The thread's count has run out, or was never drawn.
void sample_heap(HeapCall call, void* address, uint64_t bytes) {
  if (t_state.blocked) return;  // our own, or CUPTI's
  const bool drawn = t_state.heap_left != 0;
  if (!drawn) {
    t_state.heap_left = draw_interval() - static_cast<int64_t>(bytes);
    if (t_state.heap_left > 0) return;
  }
  t_state.heap_left = draw_interval();
  if (!window_is_open()) return;
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  const auto at = reinterpret_cast<uint64_t>(address);
  LiveRow row{};
  row.address = at;
  row.bytes = bytes;
  row.api = kNoApi;
  if (g_samples.insert(row)) {
    mark(at);
  } else {
    count_loss(Loss::heap_table_full);
  }
  record(call, at, bytes, false, now_ticks());
}

bool take_heap_sample(const void* address, LiveRow& was) {
  if (t_state.blocked) return false;
  const auto at = reinterpret_cast<uint64_t>(address);
  if (!g_samples.remove(at, true, was)) return false;
  unmark(at);
  was.ticks = now_ticks();
  return true;
}

void record_heap_release(HeapCall call, const LiveRow& was) {
  if (!window_is_open()) return;
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  record(call, was.address, was.bytes, true, was.ticks);
}

void put_heap_sample_back(const LiveRow& was) {
  if (g_samples.insert(was)) mark(was.address);
}

void heap_prepare() {
  if (!activity_on(Activity::heap) || window_is_open() || !g_host.patch_heap) return;
  g_host.patch_heap();
  if (g_samples.slots() == 0) {
    void* const memory = ::mmap(nullptr, LiveTable::bytes_for(kSlots), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      log_line(LogLevel::warn, "no memory for samples of host allocations; malloc records nothing");
      return;
    }
    LiveTable::format(memory, kSlots);
    g_samples = LiveTable(memory, LiveTable::bytes_for(kSlots));
    g_draws.store(now_ticks(), std::memory_order_relaxed);
  }
  // Of the window before: what has become of them was not seen.
  g_samples.each([](const LiveRow& row) {
    LiveRow was;
    if (g_samples.remove(row.address, true, was)) unmark(row.address);
  });
}

void heap_switch(bool recording) {
  g_heap_on.store(recording && activity_on(Activity::heap) && g_samples.slots() != 0,
                  std::memory_order_release);
}

namespace {
void forget_heap() { g_heap_on.store(false, std::memory_order_relaxed); }
GPUPROF_FORGET_IN_CHILD(forget_heap);
}  // namespace

}  // namespace gpuprof
