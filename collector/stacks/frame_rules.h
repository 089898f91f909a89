// SPDX-License-Identifier: Apache-2.0
// How to get from a frame to its caller's, by the call frame information (.eh_frame) that compilers
// emit for every function. x86-64: of a frame's registers, callers need rip, rsp and rbp only.
// Thread-safe; no allocation.
#pragma once

#include <cstdint>

namespace gpuprof {

// Of one return address. Packed into 64 bits: see cached rules in unwind_x86_64.cpp.
struct FrameRule {
  enum class Base : uint8_t {
    unknown,       // no information, or of a form that no compiler emits around a call
    stack,         // the frame's end (CFA) is rsp + offset
    frame,         // rbp + offset
    loaded,        // what lies at rbp + offset: functions that align their stack
    signal_frame,  // the kernel has put all registers there
    outermost      // there is no caller
  };
  enum class Saved : uint8_t {
    no,        // rbp is the caller's
    at_end,    // the caller's rbp lies at the frame's end + saved_offset
    at_frame,  // at rbp + saved_offset
  };
  Base base = Base::unknown;
  Saved saved = Saved::no;
  int32_t offset = 0;
  int16_t saved_offset = 0;

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
