// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/memory_log.h"

#include <cstring>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "formats/core/live_memory.h"

namespace gpuprof {

constinit std::atomic<bool> g_memory_log{false};

namespace {

constexpr int kNoMemory = 2;  // cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY

constinit LiveTable g_table;
constinit Mutex g_failure_lock;  // of the copy that a failed allocation makes

class LiveNames final : public NameResolver {
 public:
  std::string_view string(StringId id) const override { return ring()->strings.get(id); }
  std::string_view stack(StringId id) const override { return ring()->stacks.get(id); }
  std::string_view api_name(ApiId api) const override {
    return api < api_count() ? std::string_view(api_rows()[api].name) : std::string_view();
  }
};

bool is_of_host(ApiId api) {
  if (api >= api_count()) return false;
  const ApiRole role = api_rows()[api].role;
  return role == ApiRole::host_alloc || role == ApiRole::host_dealloc;
}

// Asked of the driver: the allocation may come from another device's pool.
uint16_t device_of(const Record& record) {
  if (is_of_host(record.api)) return kNoDevice;
  using GetAttribute = int (*)(void* out, int attribute, uint64_t address);
  static std::atomic<GetAttribute> known{nullptr};
  static std::atomic<bool> looked{false};  // once: what has allocated has loaded the driver
  GetAttribute ask = known.load(std::memory_order_acquire);
  if (!ask && !looked.exchange(true)) {
    ask = reinterpret_cast<GetAttribute>(real_symbol(loaded_driver(), "cuPointerGetAttribute"));
    known.store(ask, std::memory_order_release);
  }
  constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  int device = -1;
  if (!ask || ask(&device, kDeviceOrdinal, record.memory.address) != 0) return kNoDevice;
  return device < 0 || device > kNoDevice ? kNoDevice : static_cast<uint16_t>(device);
}

void insert(const LiveRow& row) {
  if (!g_table.insert(row)) count_loss(Loss::memory_log_full);
}

// cuMemUnmap takes away all mappings in its range, which lie side by side.
void remove_rest(const Record& record, const LiveRow& first) {
  const uint64_t end = record.memory.address + record.memory.bytes;
  LiveRow was = first;
  for (uint64_t next = first.address + first.bytes; next < end && was.bytes; next += was.bytes) {
    if (!g_table.remove(next, false, was)) return;
    if (was.ticks > record.begin) return insert(was);  // another thread has mapped it again since
  }
}

// Of the allocators' totals, at the end of a copy of the table.
AllocatorRow* allocators_in(const RingRegion& region) {
  return reinterpret_cast<AllocatorRow*>(ring()->region<uint8_t>(region) + region.bytes -
                                         sizeof(RingHeader::allocators));
}

void copy_allocators(const RingRegion& region) {
  for (uint32_t i = 0; i < kMostAllocators; ++i) {
    const AllocatorRow& from = ring()->header->allocators[i];
    AllocatorRow& to = allocators_in(region)[i];
    to.allocated.store(from.allocated.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.reserved.store(from.reserved.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.peak.store(from.peak.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.peak_ticks.store(from.peak_ticks.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

void copy_table(RingRegion& region) {
  region.used.store(0, std::memory_order_release);
  auto* const rows = ring()->region<LiveRow>(region);
  const uint64_t room = (region.bytes - sizeof(RingHeader::allocators)) / sizeof(LiveRow);
  copy_allocators(region);
  uint64_t count = 0;
  g_table.each([&](const LiveRow& row) {
    if (count < room) rows[count++] = row;
  });
  region.used.store(count * sizeof(LiveRow), std::memory_order_release);
}

void note_failure(uint64_t ticks, uint64_t bytes, StringId stack, ApiId api, uint16_t device) {
  RingHeader& header = *ring()->header;
  const LockGuard guard(g_failure_lock);
  FailedAllocationRow& row = header.failed;
  row.ticks.store(0, std::memory_order_release);
  copy_table(header.live_at_failure);
  row.bytes = bytes;
  ++row.number;
  row.thread_id = current_tid();
  row.stack = stack;
  row.api = api;
  row.device = device;
  row.ticks.store(ticks, std::memory_order_release);
}

bool encode(ByteBuffer& out, LiveMoment moment, uint64_t ticks, const RingRegion& region,
            const FailedAllocationRow* failed) {
  const RingHeader& header = *ring()->header;
  const LiveMemoryParts parts{moment,
                              ticks,
                              ring()->region<LiveRow>(region),
                              region.used.load(std::memory_order_acquire) / sizeof(LiveRow),
                              failed,
                              allocators_in(region)};
  return encode_live_memory(out, parts, LiveNames(), header.clock_shift);
}

}  // namespace

LiveRow log_release(const Record& record) {
  LiveRow was{};
  if (!g_table.remove(record.memory.address, false, was)) was.address = 0;
  return was;
}

void log_memory_call(const Record& record, StringId stack, const LiveRow& released) {
  const bool captured = record.flags & kFlagCaptured;  // memory of a graph, given when it runs
  const int result = record.memory.result;
  if (record.kind == Kind::dealloc) {
    if (released.address == 0) return;
    return result != 0 || captured ? insert(released) : remove_rest(record, released);
  }
  if (captured || (result == 0 && record.memory.address == 0)) return;
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  if (result == 0) {
    insert({record.memory.address,
            record.memory.bytes,
            record.end,
            0,
            current_tid(),
            stack,
            record.api,
            device_of(record),
            {}});
  } else if (result == kNoMemory) {
    note_failure(record.end, record.memory.bytes, stack, record.api, kNoDevice);
  }
}

void log_block(const LoggedBlock& block, uint64_t ticks, StringId stack) {
  if (block.released) {
    LiveRow was;
    (void)g_table.remove(block.address, true, was);
  } else {
    insert({block.address, block.bytes, ticks, 0, current_tid(), stack, kNoApi, block.device, {}});
  }
  if (block.device >= kMostAllocators) return;
  // One thread at a time: the allocator holds its lock.
  AllocatorRow& row = ring()->header->allocators[block.device];
  row.allocated.store(block.allocated, std::memory_order_relaxed);
  row.reserved.store(block.reserved, std::memory_order_relaxed);
  if (block.allocated <= row.peak.load(std::memory_order_relaxed)) return;
  row.peak.store(block.allocated, std::memory_order_relaxed);
  row.peak_ticks.store(ticks, std::memory_order_relaxed);
}

void log_allocator_failure(uint64_t bytes, uint16_t device) {
  const ErrnoGuard keep_errno;
  const BlockedScope blocked;
  const TakenStack stack = take_allocation_stack();
  note_failure(now_ticks(), bytes, stack.id, kNoApi, device);
}

void memory_log_begins(bool wanted) {
  const RingRegion& region = ring()->header->live;
  g_table = LiveTable(ring()->region<void>(region), region.bytes);
  g_memory_log.store(wanted && g_table.slots() != 0, std::memory_order_release);
}

void keep_live_memory(uint32_t window, uint64_t ticks) {
  if (!memory_log_is_on()) return;
  RingHeader& header = *ring()->header;
  header.live_window.store(0, std::memory_order_release);
  copy_table(header.live_at_begin);
  header.live_begin_ticks.store(ticks, std::memory_order_relaxed);
  header.live_window.store(window + 1, std::memory_order_release);
}

bool encode_live_at_begin(ByteBuffer& out, uint32_t window) {
  const RingHeader& header = *ring()->header;
  return memory_log_is_on() && header.live_window.load(std::memory_order_acquire) == window + 1 &&
         encode(out, LiveMoment::window_begins,
                header.live_begin_ticks.load(std::memory_order_relaxed), header.live_at_begin,
                nullptr);
}

bool encode_failed_allocation(ByteBuffer& out, uint32_t& written) {
  if (!failed_allocation_is_new(written)) return false;
  const LockGuard guard(g_failure_lock);
  const RingHeader& header = *ring()->header;
  const uint64_t ticks = header.failed.ticks.load(std::memory_order_relaxed);
  if (!encode(out, LiveMoment::out_of_memory, ticks, header.live_at_failure, &header.failed)) {
    return false;
  }
  written = header.failed.number;
  return true;
}

uint64_t failed_allocation_ticks() {
  if (!memory_log_is_on()) return 0;
  return ring()->header->failed.ticks.load(std::memory_order_acquire);
}

uint64_t failed_allocation_bytes() { return ring()->header->failed.bytes; }

bool failed_allocation_is_new(uint32_t written) {
  return failed_allocation_ticks() != 0 && ring()->header->failed.number != written;
}

namespace {
void forget_memory_log() {
  g_memory_log.store(false, std::memory_order_release);
  g_table = LiveTable();
  g_failure_lock.unlock();
}
GPUPROF_FORGET_IN_CHILD(forget_memory_log);
}  // namespace

}  // namespace gpuprof
