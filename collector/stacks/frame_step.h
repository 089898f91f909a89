// SPDX-License-Identifier: Apache-2.0
// From one frame to its caller's, for the processor that this is compiled for: frame_step_x86_64.h
// or frame_step_aarch64.h. Any thread, also in a signal handler. Both have:
//
// - Registers: of a frame. pc, sp, fp, and what else the processor needs.
// - registers_here(): of the function that it is inlined into.
// - registers_of(context): of where a signal interrupted the thread. `context` is the handler's
//   third argument.
// - rule_word_at(address): the rule there (frame_rules.h), packed. kNowhere: no file is mapped.
// - step(at, memory, word, exact): `word` is the rule of the frame that `at` are the registers of.
//   False: there is no caller, or none can be told. `exact` says whether at.pc is where the thread
//   is, not a return address: on entry of this frame, on return of the caller's.
#pragma once

#include <cstdint>

namespace gpuprof {
namespace {  // of the one file that includes this

// What a whole rule at an address that no file is mapped at looks like.
constexpr uint64_t kNowhere = ~uint64_t{0};
// Bytes from the stack pointer to a frame record in code without information.
constexpr uint64_t kMostUnnamed = 1 << 20;

}  // namespace
}  // namespace gpuprof

#if defined(__x86_64__)
#include "collector/stacks/frame_step_x86_64.h"
#elif defined(__aarch64__)
#include "collector/stacks/frame_step_aarch64.h"
#endif
