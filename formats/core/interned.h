// SPDX-License-Identifier: Apache-2.0
// Items that are kept once each, by their position in the order in which they came. Not
// thread-safe; memory comes from mmap and is kept.
#pragma once

#include <algorithm>
#include <string_view>

#include "formats/core/byte_buffer.h"
#include "formats/core/record.h"
#include "formats/core/string_table.h"

namespace gpuprof {

inline constexpr uint32_t kNoPosition = 0xffffffff;

inline uint64_t hash_of(StringId id) { return id * 0x9e3779b97f4a7c15u; }
// Addresses: their low bits say little.
inline uint64_t hash_of(uint64_t value) { return value * 0x9e3779b97f4a7c15u >> 20; }
inline uint64_t hash_of(std::string_view text) { return hash_bytes(text.data(), text.size()); }

// T: trivially copyable, with == and hash_of().
template <typename T>
class Interned {
 public:
  void clear() {
    items_.clear();
    std::fill(slots_.begin(), slots_.end(), 0u);
  }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.size() == 0; }
  T& operator[](size_t i) { return items_[i]; }
  const T* begin() const { return items_.begin(); }
  const T* end() const { return items_.end(); }
  T* begin() { return items_.begin(); }
  T* end() { return items_.end(); }

  // Where the item is, or where it is from now on. kNoPosition: no memory.
  uint32_t position_of(const T& item) {
    const uint64_t hash = hash_of(item);
    for (size_t at = first_slot(hash); !slots_.empty() && slots_[at]; at = next_slot(at)) {
      if (items_[slots_[at] - 1] == item) return slots_[at] - 1;
    }
    if (!make_room() || !items_.push_back(item)) return kNoPosition;
    const auto position = static_cast<uint32_t>(items_.size() - 1);
    insert(hash, position);
    return position;
  }

 private:
  size_t first_slot(uint64_t hash) const { return hash & (slots_.size() - 1); }
  size_t next_slot(size_t at) const { return (at + 1) & (slots_.size() - 1); }

  // For one item more, at half load.
  bool make_room() {
    if ((items_.size() + 1) * 2 <= slots_.size()) return true;
    if (!slots_.resize(slots_.empty() ? 256 : slots_.size() * 2)) return false;
    std::fill(slots_.begin(), slots_.end(), 0u);
    for (size_t i = 0; i < items_.size(); ++i) {
      insert(hash_of(items_[i]), static_cast<uint32_t>(i));
    }
    return true;
  }
  void insert(uint64_t hash, uint32_t position) {
    size_t at = first_slot(hash);
    while (slots_[at]) at = next_slot(at);
    slots_[at] = position + 1;
  }

  PodVector<T> items_;
  PodVector<uint32_t> slots_;  // open addressing: position + 1; 0: free
};

}  // namespace gpuprof
