// SPDX-License-Identifier: Apache-2.0
// The bytes of one protobuf message while it is written, with room for the head that will stand
// before it: a packet is copied once.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace gpuprof::perfetto {

class Message {
 public:
  size_t size() const { return end_ - begin_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()) + begin_, size()};
  }
  void clear() { begin_ = end_ = kHeadRoom; }

  // Where `size` bytes can be written behind the others; end() then says how far they were.
  uint8_t* room(size_t size) {
    if (bytes_.size() - end_ < size) bytes_.resize(2 * bytes_.size() + size);
    return bytes_.data() + end_;
  }
  void end(const uint8_t* end) { end_ = static_cast<size_t>(end - bytes_.data()); }

  void append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(room(text.size()), text.data(), text.size());
    end_ += text.size();
  }
  // Where a head of so many bytes is to be written; at most kHeadRoom.
  uint8_t* prepend(size_t size) {
    begin_ -= size;
    return bytes_.data() + begin_;
  }

 private:
  static constexpr size_t kHeadRoom = 64;
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(1024);
  size_t begin_ = kHeadRoom, end_ = kHeadRoom;
};

}  // namespace gpuprof::perfetto
