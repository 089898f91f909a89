// SPDX-License-Identifier: Apache-2.0
#include "tools/report/text_table.h"

#include <algorithm>

#include "tools/console.h"

namespace gpuprof {
namespace {

constexpr size_t kLeastRoom = 16;
constexpr size_t kMargin = 2, kGap = 2, kHanging = 2;

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// Bytes of the first `count` characters.
size_t bytes_of(std::string_view text, size_t count) {
  size_t at = 0;
  while (at < text.size() && (count > 0 || !begins_character(text[at]))) {
    if (begins_character(text[at])) --count;
    ++at;
  }
  return at;
}

void append(std::string& line, std::string_view cell, size_t width) {
  const size_t used = characters(cell);
  line.append(used < width ? width - used : 0, ' ');
  line += cell;
}

void end_line(std::string& out, std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out += line + "\n";
}

}  // namespace

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::vector<std::string> wrapped(std::string_view text, size_t room) {
  room = std::max(room, kLeastRoom);
  std::vector<std::string> out;
  while (characters(text) > room) {
    size_t cut = bytes_of(text, room);
    const size_t half = bytes_of(text, room / 2);
    for (const std::string_view marks :
         {std::string_view(" "), std::string_view("<,/;"), std::string_view("_.:~(")}) {
      const size_t mark = text.substr(0, cut).find_last_of(marks);
      if (mark == std::string_view::npos || mark < half) continue;
      cut = mark + 1;
      break;
    }
    std::string_view piece = text.substr(0, cut);
    while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
    out.emplace_back(piece);
    text.remove_prefix(cut);
  }
  if (!text.empty() || out.empty()) out.emplace_back(text);
  return out;
}

void TextTable::row(std::vector<std::string> cells, size_t indent) {
  for (std::string& cell : cells) cell = escaped(cell);
  rows_.push_back({std::move(cells), indent});
}

std::string TextTable::text() const {
  const size_t figures = titles_.size() - 1;
  std::vector<size_t> widths(figures);
  for (size_t i = 0; i < figures; ++i) {
    for (const Row& row : rows_) widths[i] = std::max(widths[i], characters(row.cells[i]));
    if (widths[i] > 0) widths[i] = std::max(widths[i], characters(titles_[i]));
  }
  size_t names = kMargin;
  for (const size_t width : widths) names += width > 0 ? width + kGap : 0;

  std::string out;
  const auto figures_of = [&](const std::vector<std::string>& cells) {
    std::string line(kMargin, ' ');
    for (size_t i = 0; i < figures; ++i) {
      if (widths[i] == 0) continue;
      append(line, cells[i], widths[i]);
      line.append(kGap, ' ');
    }
    return line;
  };
  const auto add = [&](const std::vector<std::string>& cells, size_t indent) {
    const size_t begin = names + indent;
    const std::string& name = cells.back();
    const bool fits = width_ == 0 || begin + characters(name) <= width_;
    if (!fits && begin + kHanging + kLeastRoom > width_) {  // no room beside the figures
      end_line(out, figures_of(cells));
      const size_t below = kMargin + kHanging;
      for (const std::string& piece : wrapped(name, width_ > below ? width_ - below : 0)) {
        end_line(out, std::string(below, ' ') + piece);
      }
      return;
    }
    const size_t room = width_ > begin + kHanging ? width_ - begin - kHanging : 0;
    const std::vector<std::string> pieces =
        fits ? std::vector<std::string>{name} : wrapped(name, room);
    end_line(out, figures_of(cells) + std::string(indent, ' ') + pieces.front());
    for (size_t i = 1; i < pieces.size(); ++i) {
      end_line(out, std::string(begin + kHanging, ' ') + pieces[i]);
    }
  };
  add(titles_, 0);
  for (const Row& row : rows_) add(row.cells, row.indent);
  for (const std::string& each : notes_) end_line(out, std::string(names, ' ') + escaped(each));
  return out;
}

}  // namespace gpuprof
