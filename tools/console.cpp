// SPDX-License-Identifier: Apache-2.0
#include "tools/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "formats/core/shell_text.h"
#include "formats/io/file_bytes.h"

namespace gpuprof {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr size_t kLeastColumns = 40, kUsualColumns = 80, kMostColumns = 240;
constexpr auto kFirstProgress = std::chrono::seconds(1);
constexpr auto kNextProgress = std::chrono::milliseconds(200);

std::string& buffer() {
  static std::string text;
  return text;
}

void print_message(std::string_view text, std::string_view word, const char* colour) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  line = escaped(line);
  const bool colours = has_colours(STDERR_FILENO);
  line = fmt::format("{}gpuprof:{} {}{}\n", colours ? colour : "", colours ? "\033[0m" : "", word,
                     line);
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

bool has_colours(int descriptor) {
  const auto value = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string_view(text ? text : "");
  };
  return ::isatty(descriptor) == 1 && value("TERM") != "dumb" && value("NO_COLOR").empty();
}

size_t terminal_columns() {
  size_t columns = 0;
  winsize size{};
  if (const char* const set = std::getenv("COLUMNS")) columns = std::strtoul(set, nullptr, 10);
  if (columns == 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns == 0 ? kUsualColumns : std::clamp(columns, kLeastColumns, kMostColumns);
}

void flush_output() {
  std::string text;
  text.swap(buffer());
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = write(STDOUT_FILENO, rest.data(), rest.size());
    if (count >= 0) {
      rest.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EPIPE) {
      throw ClosedPipe();
    } else if (errno != EINTR) {
      throw Failure(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
    }
  }
}

std::string escaped(std::string_view text, Layout layout) {
  std::string out;
  out.reserve(text.size());
  escape_for_terminal(text, layout, [&](std::string_view piece) { out += piece; });
  return out;
}

std::string shell_quoted(std::string_view text) {
  std::string out;
  quote_for_shell(text, [&](char c) { out += c; });
  return out;
}

void put(std::string_view text) {
  escape_for_terminal(text, Layout::lines, [](std::string_view piece) { buffer() += piece; });
  if (buffer().size() >= kBufferBytes) flush_output();
}

void put_to(const std::string& path, std::string_view text, Escaping escaping) {
  if (path.empty() && escaping == Escaping::needed) return put(text);
  if (path.empty()) {
    buffer() += text;
    return;
  }
  OutputFile file(path);
  if (escaping == Escaping::ready) {
    file.write(text);
  } else {
    escape_for_terminal(text, Layout::lines, [&](std::string_view piece) { file.write(piece); });
  }
  if (!file.commit()) throw Failure(file.error());
}

void print_error(std::string_view text) { print_message(text, "", "\033[31m"); }

void print_warning(std::string_view text) { print_message(text, "warning: ", "\033[33m"); }

void print_note(std::string_view text) { print_message(text, "", "\033[1m"); }

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_us(double microseconds) { return format_duration(microseconds * 1e3); }

Progress::Progress(std::string label)
    : label_(std::move(label)),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + kFirstProgress) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::update(uint64_t done, uint64_t total) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kNextProgress;
  shown_ = true;
  const uint64_t percent = total == 0 ? 0 : done * 100 / total;
  std::fputs(fmt::format("\r\033[K{}: {} %", label_, percent).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace gpuprof
