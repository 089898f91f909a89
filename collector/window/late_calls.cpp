// SPDX-License-Identifier: Apache-2.0
#include "collector/window/late_calls.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "collector/base/clock.h"
#include "collector/base/os.h"
#include "collector/record/ring.h"
#include "collector/window/batch.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMostNs = 50'000'000;
// A record takes some 50 ns; this leaves room for page faults, and for what the library called does
// on its way out.
constexpr uint64_t kEnoughNs = 50'000;
constexpr timespec kPause{0, 100'000};

// Whether it does not wait in a system call. The kernel says "running" also of a thread that waits
// for a processor, and -1 of one that waits for a page.
bool could_run(uint32_t tid) {
  char path[64], text[256];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
  return read_small_file(path, text, sizeof text) &&
         (std::strncmp(text, "running", 7) == 0 || std::strncmp(text, "-1 ", 3) == 0);
}

void let_run(uint32_t tid, uint64_t until_ns) {
  const uint64_t before = thread_cpu_ns(tid);
  while (before != 0 && monotonic_ns() < until_ns && could_run(tid)) {
    ::nanosleep(&kPause, nullptr);
    if (thread_cpu_ns(tid) - before >= kEnoughNs) return;  // also where it has ended
  }
}

}  // namespace

void let_calls_be_recorded() {
  const uint64_t until_ns = monotonic_ns() + kMostNs;
  const uint32_t self = current_tid();
  Ring& buffers = *ring();
  const uint32_t chunks = buffers.header->chunk_count;
  for (uint32_t i = 0; i < chunks; ++i) {
    const RingChunk& chunk = *buffers.chunk(i);
    if (chunk.state.load(std::memory_order_acquire) != static_cast<uint32_t>(ChunkState::open)) {
      continue;
    }
    const uint32_t committed = chunk.committed.load(std::memory_order_acquire);
    if (chunk.thread_id != self && !is_cupti_buffer(chunk, committed)) {
      let_run(chunk.thread_id, until_ns);
    }
  }
}

}  // namespace gpuprof
