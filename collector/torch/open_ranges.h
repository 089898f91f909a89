// SPDX-License-Identifier: Apache-2.0
// Ranges of PyTorch's in the window (operators, annotations, modules): a record each, written when
// it ends. One that ends on another thread than it began on is written when the one that it began
// on has its next range, or ends the window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

// Size of a thread's RangeThread, which is unmapped when the thread ends.
extern const size_t kRangeThreadBytes;

struct OpenRange {
  const void* key;  // by which its end is told from others'
  uint64_t begin;
  StringId name;
  Kind kind;
  bool backward;      // op
  uint64_t sequence;  // as FrameworkPayload has it
  StringId input_dims, input_types;
};

// Of the calling thread. Null where the range is not to be recorded; to be filled in at once,
// `begin` last.
OpenRange* open_range();
// The innermost one of this kind on the thread, or null.
const OpenRange* innermost_range(Kind kind);
// Mostly they end in the order of a stack; those that the program ends by hand need not. False:
// none of this key is open on the calling thread.
bool close_range(const void* key);
// Of a range that began on another thread, if it was recorded. `key` must mean one range at a time.
void close_range_of_another(const void* key);

// When a window begins and ends, on the thread that met the boundary. What the last window left is
// forgotten; what still runs on this thread is recorded up to `ticks`.
void forget_ranges();
void cut_ranges(uint64_t ticks);

}  // namespace gpuprof
