// SPDX-License-Identifier: Apache-2.0
// One bit for each of some events that lie together.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuprof::analysis {

// Positions are those of the events, from `first` up to `end`.
class Bits {
 public:
  Bits() = default;
  Bits(uint32_t first, uint32_t end)
      : first_(first), end_(end), words_((size_t{end} - first + 63) / 64) {}

  void set(uint32_t at) { words_[(at - first_) / 64] |= uint64_t{1} << (at - first_) % 64; }
  bool test(uint32_t at) const {
    return words_.empty() ? false : words_[(at - first_) / 64] >> (at - first_) % 64 & 1;
  }

  // The first one that is set, at `at` or after it; `end`: none.
  uint32_t next(uint32_t at) const {
    if (at >= end_) return end_;
    size_t word = (at - first_) / 64;
    uint64_t left = words_[word] >> (at - first_) % 64 << (at - first_) % 64;
    while (!left) {
      if (++word == words_.size()) return end_;
      left = words_[word];
    }
    return position(word, static_cast<uint32_t>(std::countr_zero(left)));
  }

  // The last one that is set, at `at` or before it; `end`: none.
  uint32_t last(uint32_t at) const {
    size_t word = (at - first_) / 64;
    const uint32_t above = 63 - (at - first_) % 64;
    uint64_t left = words_[word] << above >> above;
    while (!left) {
      if (word-- == 0) return end_;
      left = words_[word];
    }
    return position(word, 63 - static_cast<uint32_t>(std::countl_zero(left)));
  }

 private:
  uint32_t position(size_t word, uint32_t bit) const {
    return first_ + static_cast<uint32_t>(word) * 64 + bit;
  }

  uint32_t first_ = 0, end_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace gpuprof::analysis
