// SPDX-License-Identifier: Apache-2.0
// What is allocated now: a table in the ring. Any thread changes it without a lock. The process
// itself reads it, or the command, from what a killed process left. Open addressing by address: a
// row lies within kLiveProbes slots of its place, so nothing moves when one goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

// An allocation of CUDA's, or a block that a framework's allocator gave out of one.
struct LiveRow {
  uint64_t address;  // never 0
  uint64_t bytes;
  uint64_t ticks;    // when it was given
  uint32_t version;  // changes when the row does; of no meaning in a copy
  uint32_t thread_id;
  StringId stack;   // in the ring's stack table; 0: none
  ApiId api;        // the call; kNoApi: a framework's block
  uint16_t device;  // kNoDevice: of the host, or not known
  uint32_t reserved[2];
};
static_assert(sizeof(LiveRow) == 48);
inline constexpr uint16_t kNoDevice = 0xffff;
inline constexpr uint32_t kLiveProbes = 64;

class LiveTable {
 public:
  // Region: uint64 slot count (a power of two), that many atomic uint64 keys, as many rows. A key
  // is 0 (free), 1 (a row is being written) or address << 1 | framework's block.
  static constexpr uint64_t bytes_for(uint64_t slots) {
    return sizeof(uint64_t) + slots * (sizeof(uint64_t) + sizeof(LiveRow));
  }
  static void format(void* memory, uint64_t slots);  // zeroed memory of bytes_for(slots)

  LiveTable() = default;
  // Without room where the region does not hold a table, as in a file that cannot be trusted.
  LiveTable(void* memory, uint64_t bytes);
  uint64_t slots() const { return slots_; }

  // Takes the place of a row of the same address and sort, whose release was not seen. False: no
  // room.
  bool insert(const LiveRow& row);
  // `was`: the row. False: there was none.
  bool remove(uint64_t address, bool block, LiveRow& was);
  // Calls `visit(const LiveRow&)` with a copy of each row that is complete. Rows that change
  // meanwhile may be left out.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (uint64_t i = 0; i < slots_; ++i) {
      LiveRow row;
      if (read(i, row)) visit(row);
    }
  }

 private:
  bool read(uint64_t slot, LiveRow& row) const;
  void write(uint64_t slot, uint64_t key, const LiveRow& row);
  uint64_t home_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15u >> 20) & (slots_ - 1); }

  std::atomic<uint64_t>* keys_ = nullptr;
  LiveRow* rows_ = nullptr;
  uint64_t slots_ = 0;
};

}  // namespace gpuprof
