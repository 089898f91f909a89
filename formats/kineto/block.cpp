// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto/block.h"

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
  if (storage_.empty() || storage_.back().capacity() - storage_.back().size() < text.size()) {
    storage_.emplace_back().reserve(std::max(kStorage, text.size()));
  }
  std::string& storage = storage_.back();
  const size_t begin = storage.size();
  storage += text;
  const auto index = static_cast<uint32_t>(texts_.size());
  texts_.emplace_back(storage.data() + begin, text.size());
  table_.add(hash, index);
  return index;
}

void note(FaultCounts& counts, Fault fault, uint64_t offset, uint64_t count) {
  FaultCount& at = counts[static_cast<size_t>(fault)];
  if (at.count == 0 || offset < at.first) at.first = offset;
  at.count += count;
}

}  // namespace gpuprof::kineto
