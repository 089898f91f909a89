// SPDX-License-Identifier: Apache-2.0
// Small text helpers for code that runs in the traced process: fixed buffers, no allocation, no
// locale, and none of the string_view members that can throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gpuprof {

// The part of `text` from `begin` on, `count` characters at most; empty when `begin` is past the
// end.
inline std::string_view slice(std::string_view text, size_t begin, size_t count = SIZE_MAX) {
  if (begin >= text.size()) return {};
  const size_t left = text.size() - begin;
  return {text.data() + begin, count < left ? count : left};
}

inline bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && slice(text, text.size() - suffix.size()) == suffix;
}
inline bool starts_with(std::string_view text, std::string_view prefix) {
  return slice(text, 0, prefix.size()) == prefix;
}

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

inline std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes the part of `text` before the next `separator`, and the separator, off its front.
inline std::string_view take_until(std::string_view& text, char separator) {
  size_t length = 0;
  while (length < text.size() && text[length] != separator) ++length;
  const std::string_view part = slice(text, 0, length);
  text = slice(text, length + 1);
  return part;
}

// The items of a comma-separated list, blanks around them taken off. "a," has two items.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : rest_(text) {}
  bool next(std::string_view& item) {
    if (!more_) return false;
    const size_t before = rest_.size();
    item = take_until(rest_, ',');
    more_ = item.size() < before;
    item = trim(item);
    return true;
  }

 private:
  std::string_view rest_;
  bool more_ = true;
};

// Whole decimal number without sign; false when `text` is anything else or does not fit.
inline bool parse_whole(std::string_view text, uint64_t& value) {
  if (text.empty()) return false;
  uint64_t result = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    const uint64_t digit = static_cast<uint64_t>(c - '0');
    if (result > (UINT64_MAX - digit) / 10) return false;
    result = result * 10 + digit;
  }
  value = result;
  return true;
}

// "12", "0.5", "2.": at most 30 digits with at most one point; no sign, no exponent.
inline bool parse_decimal(std::string_view text, double& value) {
  if (text.size() > 31) return false;
  double result = 0, scale = 1;
  bool digits = false, point = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      digits = true;
      result = result * 10 + (c - '0');
      if (point) scale *= 10;
    } else {
      return false;
    }
  }
  if (digits) value = result / scale;
  return digits;
}

// Appends to a fixed buffer, always terminated; what does not fit is left out and remembered.
class TextBuilder {
 public:
  TextBuilder(char* out, size_t size) : out_(out), size_(size) {
    if (size_ > 0) out_[0] = '\0';
  }

  TextBuilder& add(char c) {
    if (length_ + 1 >= size_) {
      truncated_ = true;
      return *this;
    }
    out_[length_++] = c;
    out_[length_] = '\0';
    return *this;
  }

  TextBuilder& add(std::string_view text) {
    for (const char c : text) add(c);
    return *this;
  }

  // In double quotes, on one line, and cut where it would push the rest of a message out.
  TextBuilder& add_quoted(std::string_view text, size_t limit = 100) {
    add('"');
    for (const char c : slice(text, 0, limit)) add(static_cast<unsigned char>(c) < ' ' ? '?' : c);
    return add(text.size() > limit ? "...\"" : "\"");
  }

  TextBuilder& add_whole(uint64_t value) {
    char digits[20];
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) add(digits[--count]);
    return *this;
  }

  // With up to six places, without trailing zeros; the value is >= 0 and below 1e12.
  TextBuilder& add_decimal(double value) {
    const uint64_t millionths = static_cast<uint64_t>(value * 1e6 + 0.5);
    add_whole(millionths / 1000000);
    uint64_t rest = millionths % 1000000;
    if (rest == 0) return *this;
    add('.');
    for (uint64_t unit = 100000; rest != 0; unit /= 10) {
      add(static_cast<char>('0' + rest / unit));
      rest %= unit;
    }
    return *this;
  }

  size_t size() const { return length_; }
  bool truncated() const { return truncated_; }

 private:
  char* out_;
  size_t size_;
  size_t length_ = 0;
  bool truncated_ = false;
};

// Copies `text` into `out` with its terminator; false when it does not fit.
inline bool copy_text(std::string_view text, char* out, size_t size) {
  TextBuilder builder(out, size);
  builder.add(text);
  return !builder.truncated();
}

// Insertions, deletions and substitutions between two names; only the first 64 characters count.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 64;
  a = slice(a, 0, kLongest);
  b = slice(b, 0, kLongest);
  size_t row[kLongest + 1];
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      const size_t shifted = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
      row[j] = substituted < shifted ? substituted : shifted;
    }
  }
  return row[b.size()];
}

// Value of `name` in a NULL-terminated NAME=VALUE array; nullptr when it is not set.
inline const char* find_in_environment(char* const* environment, std::string_view name) {
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name.data(), name.size()) == 0 && (*entry)[name.size()] == '=') {
      return *entry + name.size() + 1;
    }
  }
  return nullptr;
}

}  // namespace gpuprof
