// SPDX-License-Identifier: Apache-2.0
// JSON text by hand: trace files have millions of small objects, and a formatting library is
// several times slower. Strict RFC 8259: UTF-8 is made valid, control characters are escaped.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/io/file_bytes.h"

namespace gpuprof {

// Appends `text` as a JSON string, with its quotes.
void append_json_text(std::string& out, std::string_view text);

class JsonText {
 public:
  // To a file, the last of it when destroyed; or to the end of `out`, at once.
  explicit JsonText(OutputFile& file) : file_(&file), text_(own_) { own_.reserve(kFlush + 4096); }
  explicit JsonText(std::string& out) : text_(out) {}
  ~JsonText() { flush(); }
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  // Text that is JSON already.
  JsonText& raw(std::string_view json) {
    text_ += json;
    return *this;
  }
  JsonText& string(std::string_view text) {
    append_json_text(text_, text);
    return *this;
  }
  template <typename Int>
  requires std::is_integral_v<Int> JsonText& number(Int value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_.append(digits, end);
    return *this;
  }
  // `decimals` after the point; what is not finite becomes 0.
  JsonText& real(double value, int decimals) {
    char digits[400];
    if (!std::isfinite(value)) value = 0;
    const auto end =
        std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals)
            .ptr;
    text_.append(digits, end);
    return *this;
  }
  // As few digits as give the same number when read; what is not finite becomes 0.
  JsonText& shortest(double value) {
    char digits[40];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, std::isfinite(value) ? value : 0.0).ptr;
    text_.append(digits, end);
    return *this;
  }
  // Nanoseconds as microseconds with three decimals; negative ones as 0.
  JsonText& microseconds(int64_t ns);

  void flush_if_large() {
    if (file_ && text_.size() >= kFlush) flush();
  }
  void flush() {
    if (!file_) return;
    file_->write(text_);
    text_.clear();
  }

 private:
  static constexpr size_t kFlush = 1 << 16;
  OutputFile* file_ = nullptr;
  std::string own_;
  std::string& text_;
};

}  // namespace gpuprof
