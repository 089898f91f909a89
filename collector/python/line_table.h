// SPDX-License-Identifier: Apache-2.0
// From the place of an instruction to its line, by the tables that CPython's code objects carry.
// Formats: Objects/lnotab_notes.txt of 3.8 to 3.10 (PEP 626), Objects/locations.md of 3.11 on
// (PEP 657). Pure; bytes may be anything.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

enum class LineTable : uint8_t {
  lnotab,     // to 3.9: co_lnotab
  ranges,     // 3.10: co_linetable
  locations,  // from 3.11: co_linetable
};

// The line of the instruction at `offset` bytes; 0 where the table has none for it.
int line_at(LineTable kind, const uint8_t* table, size_t bytes, int first_line, int offset);

}  // namespace gpuprof
