// SPDX-License-Identifier: Apache-2.0
// Included by frame_step.h only, which says what is here.
#pragma once

#include <ucontext.h>

#include <cstdint>

#include "collector/stacks/frame_rules.h"
#include "collector/stacks/frame_step.h"
#include "collector/stacks/stack_memory.h"

namespace gpuprof {
namespace {  // of the one file that includes this

struct Registers {
  uint64_t pc, sp, fp;  // rip, rsp, rbp
};

// Where the kernel puts registers at a signal: struct ucontext, which the frame's rsp points at.
constexpr uint64_t kSignalRbp = 120, kSignalRsp = 160, kSignalRip = 168;

[[gnu::always_inline]] inline Registers registers_here() {
  Registers at;
  __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                   : "=&r"(at.pc), "=&r"(at.sp), "=&r"(at.fp));
  return at;
}

Registers registers_of(const void* context) {
  const auto& saved = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return {static_cast<uint64_t>(saved[REG_RIP]), static_cast<uint64_t>(saved[REG_RSP]),
          static_cast<uint64_t>(saved[REG_RBP])};
}

uint64_t pack(const FrameRule& rule) {
  return static_cast<uint64_t>(rule.base) | static_cast<uint64_t>(rule.saved) << 8 |
         static_cast<uint64_t>(static_cast<uint16_t>(rule.saved_offset)) << 16 |
         static_cast<uint64_t>(static_cast<uint32_t>(rule.offset)) << 32;
}

FrameRule unpack(uint64_t word) {
  FrameRule rule;
  rule.base = static_cast<FrameRule::Base>(word & 0xff);
  rule.saved = static_cast<FrameRule::Saved>(word >> 8 & 0xff);
  rule.saved_offset = static_cast<int16_t>(word >> 16);
  rule.offset = static_cast<int32_t>(word >> 32);
  return rule;
}

uint64_t rule_word_at(uint64_t address) {
  FrameRule rule;
  return find_frame_rule(address, rule) ? pack(rule) : kNowhere;
}

// Code without information: perhaps it keeps a frame pointer. Believed if that leads to a caller in
// a file that is mapped.
bool step_by_frame_pointer(Registers& at, StackMemory& memory) {
  uint64_t caller = 0, frame = 0;
  if (at.fp < at.sp || at.fp - at.sp > kMostUnnamed) return false;
  memory.guess();
  if (!memory.read(at.fp, frame) || !memory.read(at.fp + 8, caller)) return false;
  FrameRule ignored;
  if (caller < kPage || !find_frame_rule(caller - 1, ignored)) return false;
  at = {caller, at.fp + 16, frame};
  return true;
}

bool step_by_signal_frame(Registers& at, StackMemory& memory) {
  const uint64_t context = at.sp;
  return memory.read(context + kSignalRip, at.pc) && memory.read(context + kSignalRbp, at.fp) &&
         memory.read(context + kSignalRsp, at.sp);
}

inline bool step(Registers& at, StackMemory& memory, uint64_t word, bool& exact) {
  exact = false;
  if (word == kNowhere) return step_by_frame_pointer(at, memory);
  const FrameRule rule = unpack(word);
  uint64_t end = 0;
  switch (rule.base) {
    case FrameRule::Base::stack: end = at.sp + static_cast<uint64_t>(int64_t{rule.offset}); break;
    case FrameRule::Base::frame: end = at.fp + static_cast<uint64_t>(int64_t{rule.offset}); break;
    case FrameRule::Base::loaded:
      if (!memory.read(at.fp + static_cast<uint64_t>(int64_t{rule.offset}), end)) return false;
      break;
    case FrameRule::Base::signal_frame: exact = true; return step_by_signal_frame(at, memory);
    case FrameRule::Base::outermost: return false;
    case FrameRule::Base::unknown: return step_by_frame_pointer(at, memory);
  }
  if (end <= at.sp) return false;  // callers lie further out
  const auto offset = static_cast<uint64_t>(int64_t{rule.saved_offset});
  if (rule.saved != FrameRule::Saved::no) {
    const uint64_t base = rule.saved == FrameRule::Saved::at_end ? end : at.fp;
    if (!memory.read(base + offset, at.fp)) return false;
  }
  at.sp = end;
  return memory.read(end - 8, at.pc) && at.pc != 0;
}

}  // namespace
}  // namespace gpuprof
