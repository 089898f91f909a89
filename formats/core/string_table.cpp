// SPDX-License-Identifier: Apache-2.0
#include "formats/core/string_table.h"

#include <bit>
#include <cstring>

namespace gpuprof {
namespace {

constexpr uint64_t kMaxProbes = 256;  // a table this crowded counts as full

__extension__ typedef unsigned __int128 Wide;

uint64_t mix(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t slot_value(uint64_t hash, uint64_t id) {
  return (hash & 0xffffffff00000000u) | id;
}

// Where a table's parts lie in its region; all zero when the region cannot hold a table (or, in a
// file that cannot be trusted, does not).
struct Layout {
  uint64_t slot_count = 0;
  uint64_t rest_offset = 0;
  uint64_t rest_bytes = 0;
};

Layout layout_of(const void* memory, size_t bytes) {
  Layout layout;
  if (!memory || bytes < 24) return layout;
  uint64_t slots;
  std::memcpy(&slots, memory, sizeof slots);
  const bool power_of_two = slots && !(slots & (slots - 1));
  if (!power_of_two || slots > (bytes - 8) / 8) return layout;
  layout.slot_count = slots;
  layout.rest_offset = 8 + slots * 8;
  layout.rest_bytes = bytes - layout.rest_offset;
  return layout;
}

uint64_t slots_of(uint64_t bytes, uint64_t bytes_per_slot) {
  const uint64_t slots = std::bit_floor(bytes / bytes_per_slot);
  return slots == 0 ? 1 : slots;
}

void format_slots(void* memory, size_t bytes, uint64_t bytes_per_slot) {
  if (bytes < 24) return;
  const uint64_t slots = slots_of(bytes, bytes_per_slot);
  std::memcpy(memory, &slots, sizeof slots);
}

// The id of the entry for which `is_it` holds, or else of the one that `add` makes: called once at
// most, 0 if there is no room for it. 0: there is none, or no free slot.
template <typename Add, typename IsIt>
uint32_t find_or_add(std::atomic<uint64_t>* slots, uint64_t slot_count, uint64_t hash,
                     const Add& add, const IsIt& is_it) {
  uint32_t mine = 0;
  const uint64_t probes = slot_count < kMaxProbes ? slot_count : kMaxProbes;
  for (uint64_t i = 0; i < probes; ++i) {
    std::atomic<uint64_t>& slot = slots[(hash + i) & (slot_count - 1)];
    uint64_t value = slot.load(std::memory_order_acquire);
    if (value == 0) {
      if (!mine) mine = add();
      if (!mine) return 0;
      if (slot.compare_exchange_strong(value, slot_value(hash, mine), std::memory_order_acq_rel)) {
        return mine;
      }
    }
    const auto id = static_cast<uint32_t>(value);
    if (slot_value(hash, 0) == (value & 0xffffffff00000000u) && is_it(id)) return id;
  }
  return 0;
}

// A text as it is kept.
struct Kept {
  static constexpr size_t kTail = 19;  // "..." and 16 digits
  std::string_view head;
  char digits[kTail];
  size_t tail = 0;

  Kept(std::string_view text, uint64_t hash) : head(text) {
    if (text.size() <= StringTable::kMaxText) return;
    head = {text.data(), StringTable::kMaxText - kTail};
    tail = kTail;
    std::memcpy(digits, "...", 3);
    for (size_t i = 0; i < 16; ++i) digits[3 + i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
  }
  size_t size() const { return head.size() + tail; }
  bool operator==(std::string_view kept) const {
    return kept.size() == size() && std::memcmp(kept.data(), head.data(), head.size()) == 0 &&
           std::memcmp(kept.data() + head.size(), digits, tail) == 0;
  }
};

}  // namespace

uint64_t hash_bytes(const void* data, size_t size) {
  constexpr uint64_t kFirst = 0x9e3779b97f4a7c15u, kSecond = 0xd1b54a32d192ed03u;
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint64_t hash = kSecond ^ size;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = mix(hash ^ word, kFirst);
  }
  uint64_t last = 0;
  if (size) std::memcpy(&last, bytes, size);
  hash = mix(hash ^ last, kFirst);
  return mix(hash ^ kFirst, kSecond);
}

void StringTable::format(void* memory, size_t bytes, uint64_t bytes_per_text) {
  format_slots(memory, bytes, bytes_per_text);
}

uint64_t StringTable::slot_bytes(uint64_t bytes, uint64_t bytes_per_text) {
  return 8 + slots_of(bytes, bytes_per_text) * 8;
}

StringTable::StringTable(void* memory, size_t bytes, std::atomic<uint64_t>* used) : used_(used) {
  const Layout layout = layout_of(memory, bytes);
  if (!layout.slot_count) return;
  slots_ = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<uint8_t*>(memory) + 8);
  slot_count_ = layout.slot_count;
  arena_ = static_cast<uint8_t*>(memory) + layout.rest_offset;
  arena_bytes_ = layout.rest_bytes;
}

void StringTable::limit(uint64_t bytes) {
  const uint64_t slots = 8 + slot_count_ * 8;
  __atomic_store_n(&arena_bytes_, bytes > slots ? bytes - slots : 0, __ATOMIC_RELAXED);
}

StringId StringTable::intern(std::string_view text) {
  if (text.empty() || !slot_count_) return 0;
  const uint64_t hash = hash_bytes(text.data(), text.size());
  const Kept kept(text, hash);
  const auto add = [&]() -> StringId {
    const uint64_t bytes = (4 + kept.size() + 3) & ~uint64_t{3};
    const uint64_t room = __atomic_load_n(&arena_bytes_, __ATOMIC_RELAXED);
    if (used_->load(std::memory_order_relaxed) + bytes > room) return 0;
    const uint64_t offset = used_->fetch_add(bytes, std::memory_order_relaxed);
    if (offset + bytes > room) return 0;
    const auto length = static_cast<uint32_t>(kept.size());
    std::memcpy(arena_ + offset, &length, 4);
    std::memcpy(arena_ + offset + 4, kept.head.data(), kept.head.size());
    std::memcpy(arena_ + offset + 4 + kept.head.size(), kept.digits, kept.tail);
    return static_cast<StringId>(offset / 4 + 1);
  };
  return find_or_add(slots_, slot_count_, hash, add, [&](StringId id) { return kept == get(id); });
}

std::string_view StringTable::get(StringId id) const {
  if (id == 0 || !slot_count_) return {};
  const uint64_t offset = (uint64_t{id} - 1) * 4;
  const uint64_t room = __atomic_load_n(&arena_bytes_, __ATOMIC_RELAXED);
  if (offset + 4 > room) return {};
  uint32_t length;
  std::memcpy(&length, arena_ + offset, 4);
  if (length > kMaxText || length > room - offset - 4) return {};
  return {reinterpret_cast<const char*>(arena_ + offset + 4), length};
}

void StringTable::clear() {
  for (uint64_t i = 0; i < slot_count_; ++i) slots_[i].store(0, std::memory_order_relaxed);
  if (used_) used_->store(0, std::memory_order_release);
}

void ShapeTable::format(void* memory, size_t bytes) {
  format_slots(memory, bytes, sizeof(LaunchShape));
}

ShapeTable::ShapeTable(void* memory, size_t bytes, std::atomic<uint64_t>* used) : used_(used) {
  const Layout layout = layout_of(memory, bytes);
  if (!layout.slot_count) return;
  slots_ = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<uint8_t*>(memory) + 8);
  slot_count_ = layout.slot_count;
  rows_ = reinterpret_cast<LaunchShape*>(static_cast<uint8_t*>(memory) + layout.rest_offset);
  row_count_ = layout.rest_bytes / sizeof(LaunchShape);
}

uint32_t ShapeTable::intern(const LaunchShape& shape) {
  if (!slot_count_) return 0;
  const uint64_t hash = hash_bytes(&shape, sizeof shape);
  const auto add = [&]() -> uint32_t {
    if (used_->load(std::memory_order_relaxed) / sizeof shape >= row_count_) return 0;
    const uint64_t row = used_->fetch_add(sizeof shape, std::memory_order_relaxed) / sizeof shape;
    if (row >= row_count_) return 0;
    rows_[row] = shape;
    return static_cast<uint32_t>(row + 1);
  };
  return find_or_add(slots_, slot_count_, hash, add, [&](uint32_t id) {
    const LaunchShape* const row = get(id);
    return row && std::memcmp(row, &shape, sizeof shape) == 0;
  });
}

const LaunchShape* ShapeTable::get(uint32_t id) const {
  const uint64_t rows = used_ ? used_->load(std::memory_order_acquire) / sizeof(LaunchShape) : 0;
  if (id == 0 || id > row_count_ || id > rows) return nullptr;
  return &rows_[id - 1];
}

}  // namespace gpuprof
