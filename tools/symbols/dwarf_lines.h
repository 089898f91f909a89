// SPDX-License-Identifier: Apache-2.0
// What debug info says about an address: the function it lies in, those inlined there, and lines.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <vector>

#include "formats/trace/stacks.h"

namespace gpuprof {

class DwarfLines {
 public:
  // `dwarf` must outlive this. Reads the address ranges of all compilation units.
  explicit DwarfLines(Dwarf* dwarf);
  // Innermost first; empty where the debug info does not cover the address. `address` as in the
  // file. Function names are demangled; of C++ with parameters.
  std::vector<Frame> at(uint64_t address) const;

 private:
  struct Range {
    uint64_t begin, end;
    Dwarf_Off unit;  // offset of the compilation unit's DIE
  };
  // libdw goes through a unit's entries by recursion: not through those of a file that means harm.
  bool is_shallow(Dwarf_Die unit) const;

  Dwarf* dwarf_;
  mutable std::map<Dwarf_Off, bool> shallow_;  // by unit, where that was asked
  std::vector<Range> ranges_;                  // in order of begin
};

}  // namespace gpuprof
