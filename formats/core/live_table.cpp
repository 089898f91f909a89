// SPDX-License-Identifier: Apache-2.0
#include "formats/core/live_table.h"

#include <cstring>

namespace gpuprof {
namespace {

constexpr uint64_t kFree = 0, kBusy = 1;

uint64_t key_of(uint64_t address, bool block) { return address << 1 | (block ? 1 : 0); }

}  // namespace

void LiveTable::format(void* memory, uint64_t slots) { std::memcpy(memory, &slots, sizeof slots); }

LiveTable::LiveTable(void* memory, uint64_t bytes) {
  uint64_t slots = 0;
  if (!memory || bytes < sizeof slots) return;
  std::memcpy(&slots, memory, sizeof slots);
  const bool power_of_two = slots && !(slots & (slots - 1));
  if (!power_of_two || slots > bytes / sizeof(LiveRow) || bytes_for(slots) > bytes) return;
  keys_ = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<uint8_t*>(memory) + sizeof slots);
  rows_ = reinterpret_cast<LiveRow*>(keys_ + slots);
  slots_ = slots;
}

// The slot's key is kBusy, set by this thread.
void LiveTable::write(uint64_t slot, uint64_t key, const LiveRow& row) {
  LiveRow& place = rows_[slot];
  const uint32_t writing = place.version | 1;  // odd: a reader leaves the row out
  __atomic_store_n(&place.version, writing, __ATOMIC_RELAXED);
  std::atomic_thread_fence(std::memory_order_release);
  place.address = row.address;
  place.bytes = row.bytes;
  place.ticks = row.ticks;
  place.thread_id = row.thread_id;
  place.stack = row.stack;
  place.api = row.api;
  place.device = row.device;
  __atomic_store_n(&place.version, writing + 1, __ATOMIC_RELEASE);
  keys_[slot].store(key, std::memory_order_release);
}

bool LiveTable::insert(const LiveRow& row) {
  if (slots_ == 0 || row.address == 0) return false;
  const uint64_t key = key_of(row.address, row.api == kNoApi);
  const uint64_t home = home_of(key);
  const uint64_t probes = slots_ < kLiveProbes ? slots_ : kLiveProbes;
  for (;;) {
    uint64_t place = slots_;
    for (uint64_t i = 0; i < probes; ++i) {
      const uint64_t slot = (home + i) & (slots_ - 1);
      const uint64_t found = keys_[slot].load(std::memory_order_relaxed);
      if (found == key) {
        place = slot;
        break;
      }
      if (found == kFree && place == slots_) place = slot;
    }
    if (place == slots_) return false;
    uint64_t expected = keys_[place].load(std::memory_order_relaxed);
    if (expected != key && expected != kFree) continue;  // taken meanwhile
    if (!keys_[place].compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) continue;
    write(place, key, row);
    return true;
  }
}

bool LiveTable::remove(uint64_t address, bool block, LiveRow& was) {
  if (address == 0) return false;
  const uint64_t key = key_of(address, block);
  const uint64_t home = home_of(key);
  const uint64_t probes = slots_ < kLiveProbes ? slots_ : kLiveProbes;
  for (uint64_t i = 0; i < probes; ++i) {
    const uint64_t slot = (home + i) & (slots_ - 1);
    uint64_t expected = key;
    if (keys_[slot].load(std::memory_order_relaxed) != key ||
        !keys_[slot].compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) {
      continue;
    }
    was = rows_[slot];
    keys_[slot].store(kFree, std::memory_order_release);
    return true;
  }
  return false;
}

bool LiveTable::read(uint64_t slot, LiveRow& row) const {
  const uint64_t key = keys_[slot].load(std::memory_order_acquire);
  if (key == kFree || key == kBusy) return false;
  const uint32_t version = __atomic_load_n(&rows_[slot].version, __ATOMIC_ACQUIRE);
  if (version & 1) return false;
  std::memcpy(&row, &rows_[slot], sizeof row);
  std::atomic_thread_fence(std::memory_order_acquire);
  return __atomic_load_n(&rows_[slot].version, __ATOMIC_RELAXED) == version &&
         keys_[slot].load(std::memory_order_relaxed) == key &&
         key == key_of(row.address, row.api == kNoApi);
}

}  // namespace gpuprof
