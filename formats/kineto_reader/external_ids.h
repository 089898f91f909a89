// SPDX-License-Identifier: Apache-2.0
// The operators' ids that events name, by event: none of them, a few or nearly all have one.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "formats/trace/sparse_column.h"

namespace gpuprof::kineto {

class ExternalIds {
 public:
  void set(size_t event, uint64_t id) {
    ids_.set(event, id < kWide ? static_cast<uint32_t>(id) : kWide);
    if (id >= kWide) wide_[event] = id;
  }

  // Calls `visit(event, id)` for each event that has one, in order.
  template <typename Visit>
  void each(const Visit& visit) const {
    ids_.each([&](size_t event, uint32_t id) {
      visit(static_cast<uint32_t>(event), id == kWide ? wide_.at(event) : id);
    });
  }

 private:
  static constexpr uint32_t kWide = 0xffffffff;

  SparseColumn<uint32_t, 0> ids_;
  std::unordered_map<size_t, uint64_t> wide_;
};

}  // namespace gpuprof::kineto
