// SPDX-License-Identifier: Apache-2.0
#include "formats/io/contents.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/utf8.h"

namespace gpuprof {
namespace {

constexpr size_t kQuoted = 24;  // bytes of a text that are shown

struct Signature {
  std::string_view begin, name;
  bool packed = false;
};
using namespace std::string_view_literals;
// The formats' own specifications; file(1) knows them by the same bytes.
constexpr Signature kSignatures[] = {
    {"\x1f\x8b"sv, "gzip; decompress it", true},
    {"PK\x03\x04"sv, "a ZIP archive; unpack it", true},
    {"\x28\xb5\x2f\xfd"sv, "Zstandard data; decompress it", true},
    {"BZh"sv, "bzip2 data; decompress it", true},
    {"\xfd\x37zXZ\0"sv, "xz data; decompress it", true},
    {"SQLite format 3\0"sv, "an SQLite database, as Nsight Systems exports it"},
    {"\x7f\x45LF"sv, "a program or library"},
    {"\x89PNG"sv, "a PNG picture"},
    {"%PDF"sv, "a PDF document"},
    {"\x80\x02"sv, "a pickle of Python's"},
    {"\x80\x04"sv, "a pickle of Python's"},
    {"\x80\x05"sv, "a pickle of Python's"},
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool begins_without_case(std::string_view text, std::string_view lower_case) {
  if (text.size() < lower_case.size()) return false;
  return std::equal(lower_case.begin(), lower_case.end(), text.begin(), [](char a, char b) {
    return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
  });
}

// By its mark, else by the zeros between its letters.
bool is_utf16(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) return true;
  if (bytes.size() < 8) return false;
  const auto zeros = [&](size_t first) {
    size_t count = 0;
    for (size_t i = first; i < bytes.size(); i += 2) count += bytes[i] == '\0';
    return count;
  };
  const size_t even = zeros(0), odd = zeros(1), most = bytes.size() / 2 * 9 / 10;
  return (even == 0 && odd >= most) || (odd == 0 && even >= most);
}

// Of a text that was cut, its last letter may be incomplete.
bool is_text(std::string_view bytes) {
  const auto control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && !is_blank(c) && c != '\f' && c != '\x1b';
  };
  if (std::any_of(bytes.begin(), bytes.end(), control)) return false;
  for (size_t cut = 0; cut < 4 && cut < bytes.size(); ++cut) {
    if (is_valid_utf8(bytes.substr(0, bytes.size() - cut))) return true;
  }
  return false;
}

std::string quoted(std::string_view text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  std::string_view shown = line.substr(0, kQuoted);
  while (!shown.empty() && !is_valid_utf8(shown)) shown.remove_suffix(1);
  return fmt::format("\"{}\"{}", shown, shown.size() < line.size() ? "..." : "");
}

}  // namespace

std::string known_contents(std::string_view first) {
  for (const Signature& known : kSignatures) {
    if (first.starts_with(known.begin)) return std::string(known.name);
  }
  if (is_utf16(first)) {
    return "text in UTF-16, not in UTF-8 as JSON is; convert it (iconv -f UTF-16 -t UTF-8)";
  }
  if (!is_text(first)) return {};
  const auto letter = std::find_if_not(first.begin(), first.end(), is_blank);
  const std::string_view text = first.substr(static_cast<size_t>(letter - first.begin()));
  if (text.empty()) return "blanks where a document would begin";
  if (begins_without_case(text, "<!doctype html") || begins_without_case(text, "<html")) {
    return "an HTML page, as a server sends for an error or a login";
  }
  if (begins_without_case(text, "<?xml")) return "XML";
  if (text.starts_with("version https://git-lfs")) {
    return "a pointer of Git LFS, not the file itself; fetch that (git lfs pull)";
  }
  return "text that is no JSON trace; it begins " + quoted(text);
}

bool is_packed(std::string_view first) {
  return std::any_of(std::begin(kSignatures), std::end(kSignatures), [&](const Signature& known) {
    return known.packed && first.starts_with(known.begin);
  });
}

std::string contents_of(std::string_view first) {
  std::string out = known_contents(first);
  if (!out.empty()) return out;
  constexpr size_t kShown = 8;
  out = "binary data; it begins";
  for (const char c : first.substr(0, kShown)) {
    out += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace gpuprof
