// SPDX-License-Identifier: Apache-2.0
// A packed field of differences: each value to the one before, the first to 0.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"
#include "formats/core/wire.h"

namespace gpuprof {

class Differences {
 public:
  void add(uint64_t value) {
    uint8_t bytes[kMaxVarintBytes];
    const uint8_t* const end = put_varint(bytes, zigzag(static_cast<int64_t>(value - last_)));
    (void)bytes_.append(bytes, static_cast<size_t>(end - bytes));
    last_ = value;
  }
  bool empty() const { return bytes_.empty(); }
  void write(WireWriter& out, uint32_t field) { out.bytes(field, bytes_.data(), bytes_.size()); }

 private:
  ByteBuffer bytes_;
  uint64_t last_ = 0;
};

}  // namespace gpuprof
