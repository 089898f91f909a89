// SPDX-License-Identifier: Apache-2.0
// Python's pickle format, protocol 2, of plain values; only opcodes that memory_viz's own reader
// knows (no classes, no memo, integers of 8 bytes at most).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/io/file_bytes.h"
#include "formats/io/utf8.h"

namespace gpuprof {

// Values one after the other; what stands between begin_ and end_ is a container's. A dict has keys
// and values in turn.
class PickleText {
 public:
  explicit PickleText(OutputFile& file) : file_(file) { op("\x80\x02"); }
  // Ends the pickle, which must be one value.
  void finish() { op("."); }

  PickleText& begin_dict() { return op("}("); }
  PickleText& end_dict() { return op("u"); }
  PickleText& begin_list() { return op("]("); }
  PickleText& end_list() { return op("e"); }
  PickleText& boolean(bool value) { return op(value ? "\x88" : "\x89"); }
  PickleText& pair(int64_t a, int64_t b) { return number(a).number(b).op("\x86"); }

  PickleText& text(std::string_view value) {
    const std::string valid = valid_utf8(value);
    op("X").bytes(valid.size(), 4);
    file_.write(valid);
    return *this;
  }
  PickleText& number(int64_t value) {
    if (value == static_cast<int32_t>(value)) return op("J").bytes(static_cast<uint64_t>(value), 4);
    return op("\x8a\x08").bytes(static_cast<uint64_t>(value), 8);
  }
  PickleText& key(std::string_view name) { return text(name); }

 private:
  PickleText& op(std::string_view code) {
    file_.write(code);
    return *this;
  }
  PickleText& bytes(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) {
      const char byte = static_cast<char>(value >> (8 * i));
      file_.write(&byte, 1);
    }
    return *this;
  }

  OutputFile& file_;
};

}  // namespace gpuprof
