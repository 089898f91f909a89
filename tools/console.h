// SPDX-License-Identifier: Apache-2.0
// What the commands say: results on standard output, messages on standard error.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "formats/core/terminal_text.h"
#include "formats/io/duration_text.h"

namespace gpuprof {

// Ends the command: one line on standard error, then exit code 2.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Whoever read standard output is gone: ends the command quietly.
struct ClosedPipe {};

// `text` with what acts on a terminal spelled out (formats/core/terminal_text.h). All that goes to
// standard output, standard error or a text file passes it: names come from files of anybody.
std::string escaped(std::string_view text, Layout layout = Layout::one_line);

// `text` as one word of a POSIX shell, for commands to paste: in quotes where that needs them.
std::string shell_quoted(std::string_view text);

// Writes to standard output, buffered; lines stay lines, all else is escaped(). Throws ClosedPipe,
// or Failure when it cannot be written.
void put(std::string_view text);
void flush_output();

// To the file `path`, whole or not at all; to standard output where `path` is empty. Throws
// Failure. `ready`: what is foreign in it is escaped for where it goes already (a page, or text
// with colours of ours).
enum class Escaping { needed, ready };
void put_to(const std::string& path, std::string_view text, Escaping escaping = Escaping::needed);

// One line on standard error after "gpuprof: "; line breaks in `text` become spaces, all else is
// escaped(). In colour on a terminal.
void print_error(std::string_view text);
void print_warning(std::string_view text);
void print_note(std::string_view text);

// An argument of a line: text as escaped(), all else as it is.
template <typename T>
decltype(auto) escaped_argument(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return escaped(std::string_view(value));
  } else {
    return (value);
  }
}
template <typename... Arguments>
std::string format_ready(fmt::string_view format, const Arguments&... arguments) {
  return fmt::vformat(format, fmt::make_format_args(arguments...));
}
// fmt::format, of which no argument can begin a line or act on a terminal.
template <typename... Arguments>
std::string format_escaped(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return format_ready(format, escaped_argument(arguments)...);
}

template <typename... Arguments>
void put_line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  put(format_escaped(format, std::forward<Arguments>(arguments)...) + "\n");
}

// Whether what goes to this descriptor has colours: a terminal that is not
// TERM=dumb, and NO_COLOR is not set, or empty (no-color.org).
bool has_colours(int descriptor);

// Columns of the terminal: COLUMNS, else what standard output says; 80 where neither does. From 40
// to 240.
size_t terminal_columns();

// 1536 -> "1.5 KiB".
std::string format_bytes(uint64_t bytes);
std::string format_us(double microseconds);

// Shows how far a piece of work is, on a terminal only and only when it takes over a second.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(uint64_t done, uint64_t total);

 private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace gpuprof
