// SPDX-License-Identifier: Apache-2.0
// Append-only intern tables inside the ring file: strings and launch shapes. Any thread may intern
// at any time without a lock; a lost race leaves one unused copy behind, never a wrong id. Readers
// of a crashed process check every bound.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/core/record.h"

namespace gpuprof {

// Ids of texts that only records of one window have (an NVTX message) lie beside those of the
// strings: with kTextId, in one of two tables that take turns (ring_file.h).
inline constexpr StringId kTextId = 1u << 31, kTextTurn = 1u << 30;

// Layout in the region: uint64 slot_count; slots (atomic u64: hash high 32 | id low 32); then the
// arena of entries: u32 length, bytes, padded to 4. An id is the entry's offset in the arena / 4
// + 1.
class StringTable {
 public:
  // `memory` is zeroed, 8-aligned, `bytes` long. `used` is the arena's fill, in the ring header.
  // There is a slot for each `bytes_per_text` of it at least.
  static void format(void* memory, size_t bytes, uint64_t bytes_per_text = kBytesPerText);
  // The slots' part, which is the table's first.
  static uint64_t slot_bytes(uint64_t bytes, uint64_t bytes_per_text = kBytesPerText);
  static constexpr uint64_t kBytesPerText = 32;
  StringTable() = default;
  StringTable(void* memory, size_t bytes, std::atomic<uint64_t>* used);

  // Longer texts are cut, and end with "..." and a hash of all of them, so that different ones stay
  // different.
  static constexpr size_t kMaxText = 65535;

  // 0 when the table is full (the caller counts Loss::string_table_full) or `text` is empty.
  StringId intern(std::string_view text);
  // Empty for 0 and for ids that are not in the table (never out of bounds).
  std::string_view get(StringId id) const;
  // Forgets all; nobody may be interning.
  void clear();
  bool has_room() const { return slot_count_ != 0; }  // or is of size 0
  // Takes only the first `bytes` of its memory, until told otherwise.
  void limit(uint64_t bytes);

 private:
  std::atomic<uint64_t>* slots_ = nullptr;
  uint64_t slot_count_ = 0;
  uint8_t* arena_ = nullptr;
  uint64_t arena_bytes_ = 0;  // atomic where others intern while limit() is called
  std::atomic<uint64_t>* used_ = nullptr;
};

// The same scheme for LaunchShape; an id is the row's index + 1.
class ShapeTable {
 public:
  static void format(void* memory, size_t bytes);
  ShapeTable() = default;
  ShapeTable(void* memory, size_t bytes, std::atomic<uint64_t>* used);

  uint32_t intern(const LaunchShape& shape);
  const LaunchShape* get(uint32_t id) const;  // null when not in the table

 private:
  std::atomic<uint64_t>* slots_ = nullptr;
  uint64_t slot_count_ = 0;
  LaunchShape* rows_ = nullptr;
  uint64_t row_count_ = 0;
  std::atomic<uint64_t>* used_ = nullptr;
};

// 64-bit hash of bytes, good in its high and low half; the same in every process and version.
uint64_t hash_bytes(const void* data, size_t size);

}  // namespace gpuprof
