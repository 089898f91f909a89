// SPDX-License-Identifier: Apache-2.0
// How to get from a frame to its caller's, by the call frame information (.eh_frame) that compilers
// emit for every function. Of a frame's registers, callers need these only: the program counter,
// the stack pointer, and the frame pointer, which is rbp on x86-64 and x29 on aarch64. Thread-safe;
// no allocation.
#pragma once

#include <cstdint>

namespace gpuprof {

// Of one return address. Packed into 64 bits: see frame_step.h.
struct FrameRule {
  enum class Base : uint8_t {
    unknown,  // no information, or of a form that no compiler emits around a call
    stack,    // the frame's end (CFA) is the stack pointer + offset
    frame,    // the frame pointer + offset
    loaded,   // what lies at the frame pointer + offset: x86-64's functions that align their stack
    signal_frame,  // the kernel has put all registers there
    outermost      // there is no caller
  };
  enum class Saved : uint8_t {
    no,        // the register is the caller's
    at_end,    // the caller's lies at the frame's end + its offset
    at_frame,  // at the frame pointer + its offset
  };
  Base base = Base::unknown;
  Saved saved = Saved::no;        // the frame pointer
  Saved returns = Saved::at_end;  // the return address; on x86-64 at the frame's end - 8
  int32_t offset = 0;
  int32_t saved_offset = 0;
  int32_t return_offset = -8;

  bool operator==(const FrameRule&) const = default;
};

// To be called before the others, not in a signal handler. Safe to call again.
void prepare_frame_rules();
// Whether find_frame_rule() takes no lock of the loader's, which another thread may hold for ever
// in a child after fork: with glibc 2.35 or newer.
bool frame_rules_need_no_lock();
// The rule at `address`, which lies within the instruction that is being executed. False: no file
// is mapped there.
bool find_frame_rule(uint64_t address, FrameRule& out);

}  // namespace gpuprof
