// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto/block.h"

#include <cstring>

#include "formats/core/string_table.h"

namespace gpuprof::kineto {
namespace {

constexpr size_t kFirstSlots = 1 << 10;
constexpr size_t kStorage = 1 << 16;

}  // namespace

TextPool::TextPool() : slots_(kFirstSlots) { texts_.emplace_back(); }

uint32_t TextPool::intern(std::string_view text, bool& fresh) {
  fresh = false;
  if (text.empty()) return 0;
  const auto hash = static_cast<uint32_t>(hash_bytes(text.data(), text.size()));
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].index_plus_1; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash != hash) continue;
    const uint32_t index = slots_[at].index_plus_1 - 1;
    if (texts_[index] == text) return index;
  }
  fresh = true;
  if (storage_.empty() || storage_.back().capacity() - storage_.back().size() < text.size()) {
    storage_.emplace_back().reserve(std::max(kStorage, text.size()));
  }
  std::string& storage = storage_.back();
  const size_t begin = storage.size();
  storage += text;
  const auto index = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(storage.data() + begin, text.size());
  slots_[at] = {hash, index + 1};
  if (texts_.size() * 2 > slots_.size()) grow();
  return index;
}

void TextPool::grow() {
  std::vector<Slot> old(slots_.size() * 4);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (!slot.index_plus_1) continue;
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].index_plus_1) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void note(FaultCounts& counts, Fault fault, uint64_t offset, uint64_t count) {
  FaultCount& at = counts[static_cast<size_t>(fault)];
  if (at.count == 0 || offset < at.first) at.first = offset;
  at.count += count;
}

}  // namespace gpuprof::kineto
