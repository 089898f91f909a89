// SPDX-License-Identifier: Apache-2.0
// Finds the return addresses of the calling thread's stack. It looks up once what to do at each
// address, and keeps that. No lock, no allocation. One system call for each page of stack that it
// has not seen this thread have. libunwind differs in three ways: it keeps what it knew of unloaded
// code, reads memory unchecked, and does not cache functions that align the stack.
//
// Any thread, also in a signal handler. It reads memory only if that can be read. If code was
// unloaded and other code loaded at its address a moment ago, the stack is wrong. It never causes a
// fault.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// Once before the first; also finds which code is this library's. Not in a signal handler.
void prepare_unwind();
// Fills `frames` with return addresses, innermost first, without those of this library. Stops at
// the thread's first function, at `size`, or where the information ends. Returns how many there
// are. `stack_pointers`, if not null: the lowest address of the stack memory of each function that
// is returned to; it ends where that of the next frame begins.
size_t unwind(uint64_t* frames, size_t size, uint64_t* stack_pointers = nullptr);
// The same of where a signal interrupted the calling thread: `context` is the handler's third
// argument. The first address is one past the instruction that was to come next, as if it had
// called; `stack_pointers[0]` is the interrupted function's.
size_t unwind_interrupted(const void* context, uint64_t* frames, size_t size,
                          uint64_t* stack_pointers);
// Code was unmapped: what is known of addresses is void.
void forget_frame_rules();

}  // namespace gpuprof
