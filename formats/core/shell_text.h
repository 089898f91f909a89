// SPDX-License-Identifier: Apache-2.0
// Text that is to be pasted into a shell.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpuprof {

// Whether a shell takes `text` as one word as it is.
constexpr bool is_shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "-_./:=@%+,";
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
    if (!letter && !beyond_ascii && kPlain.find(c) == std::string_view::npos) return false;
  }
  return !text.empty();
}

// Hands `put` the characters of `text` as one word of a POSIX shell: in single quotes where needed.
template <typename Put>
constexpr void quote_for_shell(std::string_view text, Put put) {
  if (is_shell_word(text)) {
    for (const char c : text) put(c);
    return;
  }
  put('\'');
  for (const char c : text) {
    if (c != '\'') {
      put(c);
      continue;
    }
    for (const char piece : std::string_view("'\\''")) put(piece);
  }
  put('\'');
}

// The same into `out`, which holds `size` bytes and ends in 0. Cut off where it does not fit.
inline const char* quote_for_shell(std::string_view text, char* out, size_t size) {
  size_t used = 0;
  quote_for_shell(text, [&](char c) {
    if (used + 1 < size) out[used++] = c;
  });
  out[used] = '\0';
  return out;
}

}  // namespace gpuprof
