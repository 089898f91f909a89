// SPDX-License-Identifier: Apache-2.0
#include "tools/report/text_lines.h"

#include <algorithm>

#include "tools/report/text_table.h"

namespace gpuprof {
namespace {

constexpr size_t kProseWidth = 100;
constexpr size_t kHanging = 2;

}  // namespace

std::string count_per_unit(const analysis::Report& report, uint64_t count) {
  return fmt::format("{:.1f}", report.per_unit(static_cast<double>(count)));
}

std::string time_each(double total_us, uint64_t count) {
  return format_us(total_us / static_cast<double>(std::max<uint64_t>(1, count)));
}

std::string a_unit(const analysis::Report& report) { return fmt::format("a {}", report.unit()); }

void TextLines::paragraph(std::string_view text, size_t indent, std::string_view before,
                          bool loud) {
  const size_t width = std::min(width_, kProseWidth);
  std::string row;
  const auto end_row = [&] {
    end_line(fmt::format("{:<{}}{}", escaped(before), indent, shown(escaped(row), loud)));
    before = "";
    row.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (!row.empty() && indent + row.size() + 1 + (end - at) > width) end_row();
    if (!row.empty()) row += ' ';
    row += text.substr(at, end - at);
    at = end + 1;
  }
  if (!row.empty()) end_row();
}

size_t TextLines::count() const {
  return static_cast<size_t>(std::count(out_.begin(), out_.end(), '\n'));
}

std::string TextLines::shown(std::string_view text, bool loud) const {
  const bool bold = loud && colours_;
  return fmt::format("{}{}{}", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

void TextLines::wrap(std::string_view text, bool loud) {
  const size_t last = text.find_last_not_of(' ');
  text = text.substr(0, last == text.npos ? 0 : last + 1);
  if (characters(text) <= width_) return end_line(shown(text, loud));
  const size_t margin = text.find_first_not_of(' ');
  const std::string before(margin, ' '), further(margin + kHanging, ' ');
  const size_t taken = std::min(width_, further.size());
  bool first = true;
  for (const std::string& piece : wrapped(text.substr(margin), width_ - taken)) {
    const size_t begin = std::min(piece.find_first_not_of(' '), piece.size());
    end_line((first ? before : further) + shown(std::string_view(piece).substr(begin), loud));
    first = false;
  }
}

void TextLines::end_line(std::string_view text) {
  const size_t end = text.find_last_not_of(' ');
  out_ += text.substr(0, end == text.npos ? 0 : end + 1);
  out_ += '\n';
}

}  // namespace gpuprof
