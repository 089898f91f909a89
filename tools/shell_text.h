// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "formats/core/shell_text.h"

namespace gpuprof {

// `text` as one word of a POSIX shell: in quotes where that needs them.
inline std::string shell_quoted(std::string_view text) {
  std::string out;
  quote_for_shell(text, [&](char c) { out += c; });
  return out;
}

}  // namespace gpuprof
