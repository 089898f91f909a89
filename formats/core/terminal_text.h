// SPDX-License-Identifier: Apache-2.0
// Makes text from elsewhere (a trace, a dump, a file's name, a setting) safe for a terminal. It
// spells out what would move the cursor, set a title, turn the direction of writing or end a line.
// libc only; no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuprof {

// Length of the well-formed UTF-8 sequence at the start of `text` (not empty); 0: there is none.
inline size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text.data()[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const uint8_t second = at(1);  // overlong forms, surrogates, beyond U+10FFFF
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

// Code points below U+10000 that act on a terminal instead of being shown. C0, DEL, C1 (ECMA-48),
// line and paragraph separators, and Unicode's bidirectional marks, embeddings, overrides and
// isolates (UAX #9, section 2).
inline bool acts_on_terminal(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x061c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

enum class Layout {
  lines,     // line breaks and tabs are the text's own
  one_line,  // they are spelled out, too: a name cannot begin a line of its own
};

// Hands `text` over in pieces: `append(std::string_view)`. What acts on a terminal becomes \uXXXX,
// so that JSON stays JSON; a byte that is not UTF-8 becomes U+FFFD.
template <typename Append>
void escape_for_terminal(std::string_view text, Layout layout, Append&& append) {
  constexpr char kHex[] = "0123456789abcdef";
  const char* const end = text.data() + text.size();
  const char* plain = text.data();  // where what needs no change begins
  for (const char* at = plain; at < end;) {
    const auto byte = static_cast<uint8_t>(*at);
    if ((byte >= 0x20 && byte < 0x7f) ||
        (layout == Layout::lines && (byte == '\n' || byte == '\t'))) {
      ++at;
      continue;
    }
    const size_t length = utf8_length({at, static_cast<size_t>(end - at)});
    const auto low = [&](size_t i) { return static_cast<uint32_t>(at[i]) & 0x3f; };
    uint32_t code = byte;
    if (length == 2) code = (byte & 0x1fu) << 6 | low(1);
    if (length == 3) code = (byte & 0x0fu) << 12 | low(1) << 6 | low(2);
    if (length == 4 || (length != 0 && !acts_on_terminal(code))) {
      at += length;
      continue;
    }
    append(std::string_view(plain, static_cast<size_t>(at - plain)));
    if (length == 0) {
      append(std::string_view("\xef\xbf\xbd"));
    } else {
      const char escaped[] = {
          '\\', 'u', kHex[code >> 12], kHex[code >> 8 & 15], kHex[code >> 4 & 15], kHex[code & 15]};
      append(std::string_view(escaped, sizeof escaped));
    }
    at += length ? length : 1;
    plain = at;
  }
  append(std::string_view(plain, static_cast<size_t>(end - plain)));
}

}  // namespace gpuprof
