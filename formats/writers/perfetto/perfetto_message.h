// SPDX-License-Identifier: Apache-2.0
// Writes Protobuf bytes one after the other, where they stay. A length known only at the end gets
// one byte of room; if it needs more, what follows it moves.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "formats/core/wire.h"

namespace gpuprof::perfetto {

class Message {
 public:
  // Writes over `room`, whose contents do not matter.
  explicit Message(std::string room = {}) : bytes_(std::move(room)) {}

  size_t size() const { return end_; }
  std::string_view text() const { return {bytes_.data(), end_}; }
  // The bytes of text(), and others behind them.
  std::string take() { return std::move(bytes_); }

  // Where `size` bytes can be written behind the others; end() then says how far they were.
  uint8_t* room(size_t size) {
    if (bytes_.size() - end_ < size) bytes_.resize(2 * bytes_.size() + size);
    return at(end_);
  }
  void end(const uint8_t* end) { end_ = static_cast<size_t>(end - at(0)); }

  void append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(room(text.size()), text.data(), text.size());
    end_ += text.size();
  }

  // Begins a field whose length is not known; the mark is for close().
  size_t open(uint64_t tag) {
    uint8_t* const end = put_varint(room(kMaxVarintBytes + 1), tag);
    this->end(end + 1);
    return end_;
  }
  void close(size_t mark) {
    const size_t length = end_ - mark;
    if (length < 0x80) {
      *at(mark - 1) = static_cast<uint8_t>(length);
      return;
    }
    const size_t more = varint_size(length) - 1;
    room(more);
    std::memmove(at(mark + more), at(mark), length);
    put_varint(at(mark - 1), length);
    end_ += more;
  }

 private:
  uint8_t* at(size_t offset) { return reinterpret_cast<uint8_t*>(bytes_.data()) + offset; }

  std::string bytes_;
  size_t end_ = 0;
};

}  // namespace gpuprof::perfetto
