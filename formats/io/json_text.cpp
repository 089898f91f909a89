// SPDX-License-Identifier: Apache-2.0
#include "formats/io/json_text.h"

#include "formats/io/utf8.h"

namespace gpuprof {
namespace {

bool is_plain(std::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) < 0x20 || static_cast<uint8_t>(c) >= 0x7f || c == '"' ||
        c == '\\') {
      return false;
    }
  }
  return true;
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  if (is_plain(text)) {
    out += text;
  } else {
    constexpr char kHex[] = "0123456789abcdef";
    for (const char c : valid_utf8(text)) {
      const auto byte = static_cast<uint8_t>(c);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (byte < 0x20 || byte == 0x7f) {
        out += "\\u00";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
      } else {
        out += c;
      }
    }
  }
  out += '"';
}

JsonText& JsonText::microseconds(int64_t ns) {
  if (ns < 0) ns = 0;
  number(ns / 1000);
  const auto rest = static_cast<int>(ns % 1000);
  text_ += '.';
  text_ += static_cast<char>('0' + rest / 100);
  text_ += static_cast<char>('0' + rest / 10 % 10);
  text_ += static_cast<char>('0' + rest % 10);
  return *this;
}

}  // namespace gpuprof
