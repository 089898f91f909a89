// SPDX-License-Identifier: Apache-2.0
// Lines of a report for a terminal: what is foreign in them is escaped, titles may be in bold,
// paragraphs wrap. Thread-safe as a std::string is.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tools/console.h"
#include "tools/report/report_text.h"

namespace gpuprof {

// Cells of tables: `count` per step, or per what the report has instead; `total_us` divided among
// `count`, with its unit.
std::string count_per_unit(const analysis::Report& report, uint64_t count);
std::string time_each(double total_us, uint64_t count);
// "a step", as the title of a column.
std::string a_unit(const analysis::Report& report);

class TextLines {
 public:
  explicit TextLines(const TextOptions& options)
      : width_(options.width), colours_(options.colours) {}

  // Without spaces at its end; what is wider than the terminal goes on in the next line, further
  // in.
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    wrap(format_escaped(format, std::forward<Arguments>(arguments)...), false);
  }
  // The same in bold on a terminal; a title comes after an empty line.
  void loud(std::string_view text) { wrap(escaped(text), true); }
  void title(std::string_view text) {
    line("");
    loud(text);
  }

  // Wrapped at spaces to the width, each line after `indent` columns: spaces, or, of the first one,
  // `before`. `loud`: in bold on a terminal.
  void paragraph(std::string_view text, size_t indent, std::string_view before = "",
                 bool loud = false);

  // Lines that another writer has laid out and escaped.
  void add(std::string_view text) { out_ += text; }

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }
  size_t count() const;
  // Takes back what was written since text() had `size` bytes.
  void resize(size_t size) { out_.resize(size); }

 private:
  std::string shown(std::string_view text, bool loud) const;  // of escaped text
  void wrap(std::string_view text, bool loud);                // escaped already
  void end_line(std::string_view text);

  size_t width_;
  bool colours_;
  std::string out_;
};

}  // namespace gpuprof
