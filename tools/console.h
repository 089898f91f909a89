// SPDX-License-Identifier: Apache-2.0
// What the commands say: results on standard output, messages on standard error.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpuprof {

// Ends the command: one line on standard error, then exit code 2.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Whoever read standard output is gone: ends the command quietly.
struct ClosedPipe {};

// Writes to standard output, buffered. Throws ClosedPipe, or Failure when it cannot be written.
void put(std::string_view text);
void flush_output();

// To the file `path`, whole or not at all; to standard output where `path` is empty. Throws
// Failure.
void put_to(const std::string& path, std::string_view text);

// One line on standard error after "gpuprof: "; line breaks in `text` become spaces. In colour on a
// terminal.
void print_error(std::string_view text);
void print_warning(std::string_view text);
void print_note(std::string_view text);

template <typename... Arguments>
void put_line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  put(fmt::format(format, std::forward<Arguments>(arguments)...) + "\n");
}

// 1536 -> "1.5 KiB".
std::string format_bytes(uint64_t bytes);
// 1234567 -> "1.235 ms".
std::string format_duration(double nanoseconds);
std::string format_us(double microseconds);
// At most `width` bytes: what is longer ends in "...", never within a character.
std::string shorten(std::string_view text, size_t width);

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
