// SPDX-License-Identifier: Apache-2.0
// The bytes of one packed field of varints, under construction. Not thread-safe; memory comes from
// mmap and is kept.
#pragma once

#include "formats/core/byte_buffer.h"
#include "formats/core/wire.h"

namespace gpuprof {

class PackedColumn {
 public:
  // Begins anew, with room for `count` values. False: no memory.
  bool start(size_t count) {
    bytes_.clear();
    any_ = false;
    if (!bytes_.reserve(count * kMaxVarintBytes)) return false;
    at_ = bytes_.data();
    return true;
  }
  void put(uint64_t value) {
    any_ |= value != 0;
    at_ = put_varint(at_, value);
  }
  // Nothing where all values are 0.
  void write(WireWriter& wire, uint32_t field) const {
    if (any_) write_always(wire, field);
  }
  void write_always(WireWriter& wire, uint32_t field) const {
    const auto size = static_cast<size_t>(at_ - bytes_.data());
    if (size) wire.bytes(field, bytes_.data(), size);
  }

 private:
  ByteBuffer bytes_;
  uint8_t* at_ = nullptr;
  bool any_ = false;
};

}  // namespace gpuprof
