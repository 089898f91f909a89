// SPDX-License-Identifier: Apache-2.0
// GPUPROF_MEMORY=1: keeps which GPU memory and pinned host memory is allocated, in the ring, for
// the whole run, in and outside windows. If an allocation fails for want of memory, it keeps what
// was allocated then.
#pragma once

#include <atomic>
#include <cstdint>

#include "formats/core/byte_buffer.h"
#include "formats/core/live_table.h"
#include "formats/core/record.h"

namespace gpuprof {

extern std::atomic<bool> g_memory_log;
// Any thread, at every allocation.
inline bool memory_log_is_on() { return g_memory_log.load(std::memory_order_relaxed); }

// ---- on the thread that allocates: a table look-up, no lock ----

// Before a call that gives memory back, whose record holds the address: as soon as the call has
// returned, another thread may be given it. The row, with address 0 where there was none.
LiveRow log_release(const Record& record);
// After an allocation or release; `released`: what log_release() gave. An allocation that failed
// for want of memory copies the table (about a millisecond for 10,000 allocations).
void log_memory_call(const Record& record, StringId stack, const LiveRow& released);

// A block that a framework's allocator has given out, or takes back.
struct LoggedBlock {
  uint64_t address, bytes;
  uint64_t allocated, reserved;  // of the device after it
  uint16_t device;
  bool released;
};
void log_block(const LoggedBlock& block, uint64_t ticks, StringId stack);
// Such an allocator has no memory for `bytes` more.
void log_allocator_failure(uint64_t bytes, uint16_t device);

// ---- around windows ----

// Drain thread, once the ring is there.
void memory_log_begins(bool wanted);
// On the thread that begins a window, once its hooks record: keeps what is allocated.
void keep_live_memory(uint32_t window, uint64_t ticks);

// The drain thread's: a LiveMemory message of what was allocated when the window began; false:
// none.
bool encode_live_at_begin(ByteBuffer& out, uint32_t window);
// The same of the newest failed allocation, if it is not `written` already; then `written` is it.
bool encode_failed_allocation(ByteBuffer& out, uint32_t& written);
uint64_t failed_allocation_ticks();  // 0: none has failed
uint64_t failed_allocation_bytes();
bool failed_allocation_is_new(uint32_t written);

}  // namespace gpuprof
