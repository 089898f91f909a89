// SPDX-License-Identifier: Apache-2.0
// Protobuf wire encoding into a ByteBuffer, for code that may use neither exceptions nor the C++
// runtime library. Used for dump chunks inside the traced process and for Perfetto traces in tools.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

inline constexpr size_t kMaxVarintBytes = 10;

constexpr uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

constexpr size_t varint_size(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Writes `value` at `out`, which has room for kMaxVarintBytes, and returns the end.
inline uint8_t* put_varint(uint8_t* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value) | 0x80;
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Appends fields of one message. When memory cannot be had, ok() turns false and stays so; what was
// appended since is then not a valid message. Not thread-safe.
class WireWriter {
 public:
  explicit WireWriter(ByteBuffer& out) : out_(out) {}
  bool ok() const { return ok_; }
  size_t size() const { return out_.size(); }

  // Scalar fields are left out where they are 0, as proto3 does.
  void uint(uint32_t field, uint64_t value) {
    if (value) uint_always(field, value);
  }
  void sint(uint32_t field, int64_t value) { uint(field, zigzag(value)); }
  // int32 and int64 of proto: negative values take ten bytes.
  void int_field(uint32_t field, int64_t value) { uint(field, static_cast<uint64_t>(value)); }
  void uint_always(uint32_t field, uint64_t value) {
    uint8_t bytes[2 * kMaxVarintBytes];
    uint8_t* end = put_varint(bytes, tag(field, 0));
    end = put_varint(end, value);
    raw(bytes, static_cast<size_t>(end - bytes));
  }
  void fixed32(uint32_t field, uint32_t value) { fixed(field, 5, &value, sizeof value); }
  void fixed64(uint32_t field, uint64_t value) { fixed(field, 1, &value, sizeof value); }
  void real(uint32_t field, double value) { fixed(field, 1, &value, sizeof value); }

  void bytes(uint32_t field, const void* data, size_t size) {
    length(field, size);
    raw(data, size);
  }
  void bytes(uint32_t field, std::string_view text) { bytes(field, text.data(), text.size()); }
  void text(uint32_t field, std::string_view text) {
    if (!text.empty()) bytes(field, text);
  }
  // Tag and length of a field whose `size` bytes the caller appends next with raw().
  void length(uint32_t field, size_t size) {
    uint8_t head[2 * kMaxVarintBytes];
    uint8_t* end = put_varint(head, tag(field, 2));
    end = put_varint(end, size);
    raw(head, static_cast<size_t>(end - head));
  }
  void raw(const void* data, size_t size) {
    ok_ = ok_ && out_.append(static_cast<const uint8_t*>(data), size);
  }

  // A nested message whose length is not known yet: fields appended between open and close are its.
  [[nodiscard]] size_t open(uint32_t field) {
    uint8_t head[kMaxVarintBytes + 1];
    uint8_t* end = put_varint(head, tag(field, 2));
    *end++ = 0;  // grows in close() where the length takes more than one byte
    raw(head, static_cast<size_t>(end - head));
    return out_.size();
  }
  void close(size_t mark) {
    if (!ok_) return;
    const size_t size = out_.size() - mark;
    const size_t more = varint_size(size) - 1;
    const uint8_t zeros[kMaxVarintBytes] = {};
    raw(zeros, more);
    if (!ok_) return;
    uint8_t* const at = out_.data() + mark;
    if (more) std::memmove(at + more, at, size);
    put_varint(at - 1, size);
  }

 private:
  static constexpr uint64_t tag(uint32_t field, uint32_t type) {
    return uint64_t{field} << 3 | type;
  }
  void fixed(uint32_t field, uint32_t type, const void* value, size_t size) {
    uint8_t bytes[kMaxVarintBytes + 8];
    uint8_t* const end = put_varint(bytes, tag(field, type));
    std::memcpy(end, value, size);
    raw(bytes, static_cast<size_t>(end - bytes) + size);
  }

  ByteBuffer& out_;
  bool ok_ = true;
};

}  // namespace gpuprof
