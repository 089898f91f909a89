// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/block.h"

#include <cstring>

#include "formats/core/string_table.h"

namespace gpuprof::kineto {
namespace {

constexpr size_t kFirstSlots = 1 << 10;
constexpr size_t kStorage = 1 << 16;

}  // namespace

TextPool::TextPool() : table_(kFirstSlots) { texts_.emplace_back(); }

uint32_t TextPool::intern(std::string_view text, bool& fresh) {
  fresh = false;
  if (text.empty()) return 0;
  const auto hash = static_cast<uint32_t>(hash_bytes(text.data(), text.size()));
  const uint32_t known = table_.find(hash, [&](uint32_t index) { return texts_[index] == text; });
  if (known != NumberTable::kNotThere) return known;
  fresh = true;
  std::string& storage = storage_for(text.size());
  const size_t begin = storage.size();
  storage += text;
  const auto index = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(storage.data() + begin, text.size());
  table_.add(hash, index);
  return index;
}

std::string& TextPool::storage_for(size_t size) {
  const auto room = [this] {
    return storage_[in_use_ - 1].capacity() - storage_[in_use_ - 1].size();
  };
  if (in_use_ > 0 && room() >= size) return storage_[in_use_ - 1];
  if (in_use_ == storage_.size()) storage_.emplace_back();
  std::string& next = storage_[in_use_++];
  next.reserve(std::max(kStorage, size));
  return next;
}

void TextPool::clear() {
  table_.clear();
  texts_.resize(1);
  for (std::string& storage : storage_) storage.clear();
  in_use_ = 0;
}

void Block::clear() {
  events.clear();
  shapes.clear();
  extras.clear();
  rows.clear();
  texts.clear();
  flows.clear();
  facts.clear();
  counters.clear();
  steps.clear();
  span_begin = INT64_MAX;
  span_end = INT64_MIN;
  faults = {};
}

void note(FaultCounts& counts, Fault fault, uint64_t offset, uint64_t count) {
  FaultCount& at = counts[static_cast<size_t>(fault)];
  if (at.count == 0 || offset < at.first) at.first = offset;
  at.count += count;
}

}  // namespace gpuprof::kineto
