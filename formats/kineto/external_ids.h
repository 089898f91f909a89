// SPDX-License-Identifier: Apache-2.0
// The operators' ids that events name, by event: none of them, a few or nearly all have one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace gpuprof::kineto {

class ExternalIds {
 public:
  void set(size_t event, uint64_t id) {
    if (event / kPart >= parts_.size()) parts_.resize(event / kPart + 1);
    std::unique_ptr<Part>& part = parts_[event / kPart];
    if (!part) part = std::make_unique<Part>();
    (*part)[event % kPart] = id < kWide ? static_cast<uint32_t>(id) : kWide;
    if (id >= kWide) wide_[event] = id;
  }

  // Calls `visit(event, id)` for each event that has one, in order.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (size_t k = 0; parts_[i] && k < kPart; ++k) {
        const uint32_t id = (*parts_[i])[k];
        const size_t event = i * kPart + k;
        if (id) visit(static_cast<uint32_t>(event), id == kWide ? wide_.at(event) : id);
      }
    }
  }

 private:
  static constexpr size_t kPart = 1024;
  static constexpr uint32_t kWide = 0xffffffff;
  using Part = std::array<uint32_t, kPart>;

  std::vector<std::unique_ptr<Part>> parts_;
  std::unordered_map<size_t, uint64_t> wide_;
};

}  // namespace gpuprof::kineto
