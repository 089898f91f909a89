// SPDX-License-Identifier: Apache-2.0
// A table for a terminal: columns of figures as wide as they must be, then names, which wrap.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuprof {

// `text` in pieces of at most `room` characters (at least 16). Cut behind ", " and other marks
// between words if the second half of the room has any.
std::vector<std::string> wrapped(std::string_view text, size_t room);
// Of UTF-8.
size_t characters(std::string_view text);

constexpr size_t kWide = 100;  // columns of a terminal from which on there is room for all figures

class TextTable {
 public:
  // `titles`: of the columns of figures, then of the names. `width`: of the whole; 0: names are
  // never wrapped. A name stands below its figures if these leave it no room.
  TextTable(std::vector<std::string> titles, size_t width)
      : titles_(std::move(titles)), width_(width) {}

  // As many cells as there are titles. `indent`: of the name, in characters.
  void row(std::vector<std::string> cells, size_t indent = 0);
  // A line below, where names stand.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  bool empty() const { return rows_.empty(); }

  // Lines that end with a line feed; what is foreign is escaped. A column without any text is left
  // out.
  std::string text() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    size_t indent;
  };

  std::vector<std::string> titles_;
  size_t width_;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;
};

}  // namespace gpuprof
