// SPDX-License-Identifier: Apache-2.0
// Numbers for things that are equal as bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "formats/core/string_table.h"

namespace gpuprof::kineto {

// Finds numbers of things that are kept elsewhere by their hash; open addressing, half full at
// most.
class NumberTable {
 public:
  static constexpr uint32_t kNotThere = 0xffffffff;

  explicit NumberTable(size_t slots) : slots_(slots) {}  // a power of two

  // The number for which `same` holds, or kNotThere: then add() may follow.
  template <typename Same>
  uint32_t find(uint32_t hash, Same same) {
    at_ = hash & (slots_.size() - 1);
    for (; slots_[at_].number_plus_1; at_ = (at_ + 1) & (slots_.size() - 1)) {
      const uint32_t number = slots_[at_].number_plus_1 - 1;
      if (slots_[at_].hash == hash && same(number)) return number;
    }
    return kNotThere;
  }

  // What find() has just not found.
  void add(uint32_t hash, uint32_t number) {
    slots_[at_] = {hash, number + 1};
    if (++used_ * 2 > slots_.size()) grow();
  }

  void clear() {  // keeps the memory
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
  }

 private:
  struct Slot {
    uint32_t hash, number_plus_1;
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 4);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.number_plus_1) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number_plus_1) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0, at_ = 0;
};

// Appends to the vector it is made with, which nobody else may change.
template <typename Thing>
class Interned {
  static_assert(std::has_unique_object_representations_v<Thing>);

 public:
  explicit Interned(std::vector<Thing>& things) : table_(256), things_(things) {}
  uint32_t operator()(const Thing& thing) {
    const auto hash = static_cast<uint32_t>(hash_bytes(&thing, sizeof thing));
    const uint32_t known = table_.find(hash, [&](uint32_t number) {
      return std::memcmp(&things_[number], &thing, sizeof thing) == 0;
    });
    if (known != NumberTable::kNotThere) return known;
    const auto number = static_cast<uint32_t>(things_.size());
    things_.push_back(thing);
    table_.add(hash, number);
    return number;
  }

 private:
  NumberTable table_;
  std::vector<Thing>& things_;
};

}  // namespace gpuprof::kineto
