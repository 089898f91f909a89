// SPDX-License-Identifier: Apache-2.0
// Call stacks of recorded calls, interned in the ring: return addresses, whose names are the tools'
// business, and among them frames of Python. What a stack costs the calling thread: see take_stack
// in recorder.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/record/recorder.h"
#include "formats/core/settings.h"

namespace gpuprof {

// Frames kept of one stack, the innermost; of deeper ones the outermost are missing.
inline constexpr size_t kMaxStackFrames = 192;

// Makes the unwinder ready if stacks are wanted. Drain thread, once a session.
void prepare_stacks();
bool stacks_are_wanted();  // by the settings
bool stacks_are_on();
// Says which calls GPUPROF_STACKS names in vain, since the activities leave them out. Once, when
// the settings are read.
void warn_of_calls_without_stacks();
// Whether calls of this row are to have stacks.
bool stack_wanted(const ApiRow& row);
// A window begins: of each kind its first call has a stack, then one in N.
void restart_stack_counts();
// For the dump: why there are none though they were asked for; "".
const char* stack_note();

// The kind of stack that a call of this row can have; StackKind::count: none.
StackKind stack_kind(const ApiRow& row);

}  // namespace gpuprof
