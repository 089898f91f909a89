// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gpuprof {

// Columns that text may take: COLUMNS, else the terminal's where standard output is one, else 80;
// from 40 to 160. Columns of figures in tables are never broken, so a table may need 70.
size_t line_width();

// Of `width` columns what is left beside `used` ones for a name, at least 12.
constexpr size_t room_beside(size_t used, size_t width) {
  constexpr size_t kLeast = 12;
  return width > used + kLeast ? width - used : kLeast;
}

}  // namespace gpuprof
