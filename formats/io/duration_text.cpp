// SPDX-License-Identifier: Apache-2.0
#include "formats/io/duration_text.h"

#include <fmt/format.h>

namespace gpuprof {

std::string format_duration(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.3f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.3f} ms", nanoseconds / 1e6);
  return fmt::format("{:.3f} s", nanoseconds / 1e9);
}

}  // namespace gpuprof
