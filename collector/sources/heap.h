// SPDX-License-Identifier: Apache-2.0
// The activity `malloc`: samples of the host memory that the program allocates in a window, with
// their call stacks, and of when it gives those back. The bytes between two samples are
// exponentially distributed. An allocation of s bytes is seen with probability 1 - exp(-s /
// interval), wherever it is made; formats/trace/heap.h says what a sample stands for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collector/record/recorder.h"
#include "formats/core/live_table.h"

namespace gpuprof {

// Functions whose calls are seen; names in heap.cpp.
enum class HeapCall : uint8_t {
  malloc,
  calloc,
  realloc,
  free,
  posix_memalign,
  aligned_alloc,
  memalign,
  valloc,
  mmap,
  munmap,
  count
};
inline constexpr size_t kHeapCallCount = static_cast<size_t>(HeapCall::count);
const char* heap_call_name(HeapCall call);

// ---- on the thread that allocates; outside windows one load and a branch ----

extern std::atomic<bool> g_heap_on;
inline bool heap_is_sampled() { return g_heap_on.load(std::memory_order_relaxed); }

void sample_heap(HeapCall call, void* address, uint64_t bytes);
// After memory was given; null: it was not.
inline void note_heap_given(HeapCall call, void* address, uint64_t bytes) {
  if (!heap_is_sampled() || !address) return;
  const int64_t left = t_state.heap_left - static_cast<int64_t>(bytes);
  if (__builtin_expect(left > 0, 1)) {
    t_state.heap_left = left;
  } else {
    sample_heap(call, address, bytes);
  }
}

// Which addresses may be of samples: counts by a hash of the address, so that most releases need
// no look into the table.
inline constexpr size_t kHeapMarks = 1 << 16;
extern std::atomic<uint8_t> g_heap_marks[kHeapMarks];
inline std::atomic<uint8_t>& heap_mark(const void* address) {
  return g_heap_marks[reinterpret_cast<uint64_t>(address) * 0x9e3779b97f4a7c15u >> 48];
}

// Before memory is given back: the next moment another thread may have it. `was`: the sample that
// it was, with the time of now; false: none.
bool take_heap_sample(const void* address, LiveRow& was);
inline bool heap_sample_at(const void* address, LiveRow& was) {
  return heap_is_sampled() && heap_mark(address).load(std::memory_order_relaxed) != 0 &&
         take_heap_sample(address, was);
}
void record_heap_release(HeapCall call, const LiveRow& was);
// It was not given back after all.
void put_heap_sample_back(const LiveRow& was);

// ---- around windows ----

// Drain thread, before a window of which no record is made yet. Nothing without the activity.
void heap_prepare();
// With the flags of all hooks.
void heap_switch(bool recording);

}  // namespace gpuprof
