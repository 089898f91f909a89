// SPDX-License-Identifier: Apache-2.0
#include "tools/line_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace gpuprof {
namespace {

size_t wanted_width() {
  const char* const columns = std::getenv("COLUMNS");
  if (const long number = columns ? std::strtol(columns, nullptr, 10) : 0; number > 0) {
    return static_cast<size_t>(number);
  }
  winsize size{};
  const bool known = ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

size_t line_width() { return std::clamp<size_t>(wanted_width(), 40, 160); }

}  // namespace gpuprof
