// SPDX-License-Identifier: Apache-2.0
// Reading what put_varint() (formats/core/wire.h) has written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuprof {

// A cursor over varints. After a failure everything reads as 0 and ok() is false.
class Varints {
 public:
  Varints() = default;
  explicit Varints(std::string_view bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const uint8_t* place() const { return at_; }

  uint64_t next() {
    if (at_ != end_ && *at_ < 0x80) return *at_++;
    return next_long();
  }
  int64_t next_signed() {
    const uint64_t value = next();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  std::string_view take(uint64_t size) {
    if (size > left()) return fail(), std::string_view();
    const auto* const from = reinterpret_cast<const char*>(at_);
    at_ += size;
    return {from, static_cast<size_t>(size)};
  }
  void fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  uint64_t next_long() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) break;
      const uint8_t byte = *at_++;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace gpuprof
