// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/texts.h"

#include <cstring>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/io/utf8.h"
#include "formats/kineto_reader/scan.h"

namespace gpuprof::kineto {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The four digits at the start of `text`; -1: they are not there.
int hex4(std::string_view text) {
  if (text.size() < 4) return -1;
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex_digit(text[static_cast<size_t>(i)]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// Reads \uXXXX (and the second half of a pair) whose digits begin at text[at]; how many characters
// it took, 0 where it is none.
size_t append_code(std::string_view text, size_t at, std::string& out) {
  const int high = hex4(text.substr(at));
  if (high < 0) return 0;
  if (high < 0xd800 || high >= 0xe000) {
    append_utf8(out, static_cast<uint32_t>(high));
    return 4;
  }
  if (high >= 0xdc00 || text.substr(at + 4, 2) != "\\u") return 0;
  const int low = hex4(text.substr(at + 6));
  if (low < 0xdc00 || low >= 0xe000) return 0;
  append_utf8(out, 0x10000 + (static_cast<uint32_t>(high - 0xd800) << 10) +
                       static_cast<uint32_t>(low - 0xdc00));
  return 10;
}

// A JSON value that must be strict, from `at` on; null: it is not.
class Strict {
 public:
  explicit Strict(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool members() {
    for (space(); at_ < end_; space()) {
      if (!string() || !take(':') || !value(0)) return false;
      space();
      if (at_ == end_) return true;
      if (!take(',')) return false;
    }
    return false;
  }

 private:
  void space() {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    const char* const begin = at_;
    for (; at_ < end_ && *at_ != '"'; ++at_) {
      if (static_cast<uint8_t>(*at_) < 0x20) return false;
      if (*at_ == '\\' && !escape()) return false;
    }
    if (at_ == end_ || !is_valid_utf8({begin, static_cast<size_t>(at_ - begin)})) return false;
    ++at_;
    return true;
  }
  bool escape() {
    if (++at_ == end_) return false;
    if (*at_ != 'u') return std::strchr("\"\\/bfnrt", *at_) != nullptr && *at_;
    const bool ok = hex4({at_ + 1, static_cast<size_t>(end_ - at_ - 1)}) >= 0;
    at_ += ok ? 4 : 0;
    return ok;
  }
  bool digits() {
    const char* const begin = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > begin;
  }
  bool number() {
    if (*at_ == '-') ++at_;
    if (at_ < end_ && *at_ == '0') {
      ++at_;
    } else if (!digits()) {
      return false;
    }
    if (at_ < end_ && *at_ == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      return digits();
    }
    return true;
  }
  bool word(std::string_view text) {
    if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool list(char close, int depth) {
    ++at_;
    space();
    if (at_ < end_ && *at_ == close) {
      ++at_;
      return true;
    }
    do {
      if (close == '}' && (!string() || !take(':'))) return false;
      if (!value(depth + 1)) return false;
    } while (take(','));
    return take(close);
  }
  bool value(int depth) {
    space();
    if (at_ == end_ || depth > kDeepest) return false;
    switch (*at_) {
      case '"': return string();
      case '{': return list('}', depth);
      case '[': return list(']', depth);
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  const char* at_;
  const char* end_;
};

// `text` without what lies between quotes being wrong: escapes and bytes are made sound.
std::string with_sound_strings(std::string_view text, TextFaults& faults) {
  std::string out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    if (*at != '"') {
      out += *at++;
      continue;
    }
    bool escaped = false;
    const char* const quote = string_end(at + 1, end, escaped);
    if (!quote) return {};
    std::string plain;
    unescape({at + 1, static_cast<size_t>(quote - at - 1)}, plain, faults);
    append_json_text(out, plain);
    at = quote + 1;
  }
  return out;
}

}  // namespace

void unescape(std::string_view inside, std::string& out, TextFaults& faults) {
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    const char c = i + 1 < inside.size() ? inside[i + 1] : '\0';
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const size_t known = c ? kNames.find(c) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += kValues[known];
      ++i;
    } else if (const size_t taken = c == 'u' ? append_code(inside, i + 2, out) : 0) {
      i += 1 + taken;
    } else {
      ++faults.escapes;
      out += '\\';
    }
  }
}

bool are_strict_members(std::string_view members) { return Strict(members).members(); }

std::string strict_members(std::string_view members, TextFaults& faults) {
  // Values need separators behind them, and scanning needs bytes to look at.
  std::string text(members);
  text += '}';
  const size_t size = text.size();
  text.append(kScanPadding, '\0');
  const char* at = text.data();
  const char* const end = at + size;
  std::string out;
  while (at < end) {
    Value key, value;
    at = skip_space(at, end);
    const char* const begin = at;
    at = read_value(at, end, key);
    if (!at || key.type != ValueType::string) break;
    at = skip_space(at, end);
    if (at == end || *at != ':') break;
    at = read_value(skip_space(at + 1, end), end, value);
    if (!at) break;
    const std::string_view raw(begin, static_cast<size_t>(at - begin));
    std::string sound = with_sound_strings(raw, faults);
    if (!are_strict_members(sound)) {
      ++faults.values;
    } else {
      if (!out.empty()) out += ',';
      out += sound;
    }
    at = skip_space(at, end);
    if (at == end || *at != ',') break;
    ++at;
  }
  return out;
}

std::string sound_members(std::string_view members, TextFaults& faults) {
  const std::string text =
      are_strict_members(members) ? std::string(members) : strict_members(members, faults);
  std::string out;
  out.reserve(text.size());
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') inside = !inside;
    if (inside && text[i] == '\\') out += text[i++];
    if (inside || !is_space(text[i])) out += text[i];
  }
  return out;
}

}  // namespace gpuprof::kineto
