// SPDX-License-Identifier: Apache-2.0
// Reads .eh_frame: encoded numbers, descriptions of functions (FDE) and what they have in common
// (CIE), and the instructions that say where the caller's registers are. Internal to frame_rules.
#pragma once

#include <cstdint>

#include "collector/stacks/frame_rules.h"

namespace gpuprof::eh {

// Pointer encodings (DW_EH_PE_*): format in the low 4 bits, then what the value is relative to.
enum : uint8_t {
  kSigned4 = 0x0b,
  kRelativeToPlace = 0x10,
  kRelativeToData = 0x30,
  kIndirect = 0x80,
  kOmitted = 0xff
};

// The bytes are the linker's, as mapped by the loader; what bounds there are is checked.
struct Reader {
  const uint8_t* at;
  const uint8_t* end;   // null: not known
  const uint8_t* data;  // what kRelativeToData is relative to
  bool ok = true;

  template <typename T>
  T fixed();
  uint64_t uleb();
  int64_t sleb();
  uint64_t pointer(uint8_t encoding);
  bool more() const { return ok && at < end; }
};

// The rule for `address` by the description at `fde`. False: it is of another function, or of a
// form that is not understood.
bool read_rule(const uint8_t* fde, uint64_t address, FrameRule& out);

}  // namespace gpuprof::eh
