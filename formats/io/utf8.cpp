// SPDX-License-Identifier: Apache-2.0
#include "formats/io/utf8.h"

#include "formats/core/terminal_text.h"

namespace gpuprof {
std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length) {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    } else {
      out.append("\xef\xbf\xbd");
      text.remove_prefix(1);
    }
  }
  return out;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (!length) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace gpuprof
