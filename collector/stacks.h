// SPDX-License-Identifier: Apache-2.0
// Native call stacks of recorded calls: return addresses only, interned in the ring; names are the
// tools' business. The unwinder is libunwind's unw_backtrace, opened with RTLD_LOCAL and never
// linked: linked, it would take over the C++ exceptions of the whole process. Where it is absent,
// glibc's backtrace() does, 20 times slower. What a stack costs the calling thread: see take_stack
// in recorder.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/recorder.h"
#include "formats/core/settings.h"

namespace gpuprof {

// Frames kept of one stack, the innermost; of deeper ones the outermost are missing.
inline constexpr size_t kMaxStackFrames = 192;

// Fills `frames` with up to `size` return addresses, innermost first, its own caller's among them.
using Unwinder = int (*)(void** frames, int size);

// Opens the unwinder if stacks are wanted, and warms it up. Drain thread, once a session. `library`
// is what to open ("libunwind.so.8").
void prepare_stacks(const char* library);
// In a child after fork: no stacks there, another thread may have held the unwinder's locks.
void forget_stacks_in_child();
bool stacks_are_on();
// Whether calls of this row are to have stacks.
bool stack_wanted(const ApiRow& row);
// A window begins: of each kind its first call has a stack, then one in N.
void restart_stack_counts();
// Code was unmapped: what the unwinder knows of those addresses is void.
void forget_unwind_cache();
// For the dump: how stacks were taken where that is not by libunwind, or why there are none; "".
const char* stack_note();

// The kind of stack that a call of this row can have; StackKind::count: none.
StackKind stack_kind(const ApiRow& row);

}  // namespace gpuprof
