// SPDX-License-Identifier: Apache-2.0
// A value for each of many things, most of which, in long stretches, have none: a stretch takes
// room when one of it gets a value.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace gpuprof {

// Reading is thread-safe while nothing is written.
template <typename T, T kNone>
class SparseColumn {
 public:
  void set(size_t i, T value) {
    if (i / kPart >= parts_.size()) parts_.resize(i / kPart + 1);
    std::unique_ptr<Part>& part = parts_[i / kPart];
    if (!part) {
      part = std::make_unique_for_overwrite<Part>();
      part->fill(kNone);
    }
    (*part)[i % kPart] = value;
  }

  T operator[](size_t i) const {
    if (i / kPart >= parts_.size() || !parts_[i / kPart]) return kNone;
    return (*parts_[i / kPart])[i % kPart];
  }

  // Calls `visit(i, value)` for each that has one, in order.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (size_t part = 0; part < parts_.size(); ++part) {
      for (size_t k = 0; parts_[part] && k < kPart; ++k) {
        const T value = (*parts_[part])[k];
        if (value != kNone) visit(part * kPart + k, value);
      }
    }
  }

 private:
  static constexpr size_t kPart = 1024;
  using Part = std::array<T, kPart>;

  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace gpuprof
