// SPDX-License-Identifier: Apache-2.0
// Numbers for things that are equal as bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "formats/core/string_table.h"

namespace gpuprof::kineto {

// Appends to the vector it is made with, which nobody else may change.
template <typename Thing>
class Interned {
  static_assert(std::has_unique_object_representations_v<Thing>);

 public:
  explicit Interned(std::vector<Thing>& things) : slots_(256), things_(things) {}
  uint32_t operator()(const Thing& thing) {
    const auto hash = static_cast<uint32_t>(hash_bytes(&thing, sizeof thing));
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].index_plus_1; at = (at + 1) & (slots_.size() - 1)) {
      const Thing& same = things_[slots_[at].index_plus_1 - 1];
      if (slots_[at].hash == hash && std::memcmp(&same, &thing, sizeof thing) == 0) {
        return slots_[at].index_plus_1 - 1;
      }
    }
    const auto index = static_cast<uint32_t>(things_.size());
    things_.push_back(thing);
    slots_[at] = {hash, index + 1};
    if (things_.size() * 2 > slots_.size()) grow();
    return index;
  }

 private:
  struct Slot {
    uint32_t hash, index_plus_1;
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 4);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.index_plus_1) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].index_plus_1) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<Thing>& things_;
};

}  // namespace gpuprof::kineto
