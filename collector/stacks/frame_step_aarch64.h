// SPDX-License-Identifier: Apache-2.0
// Included by frame_step.h only, which says what is here. Return addresses may be signed (pointer
// authentication): the signature is taken off, whatever the rule says of it.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "collector/stacks/frame_rules.h"
#include "collector/stacks/frame_step.h"
#include "collector/stacks/stack_memory.h"

namespace gpuprof {
namespace {  // of the one file that includes this

struct Registers {
  uint64_t pc, sp, fp;  // fp: x29
  uint64_t link;        // x30; means something in an exact frame only
  bool sp_is_known;     // false: at least so high
};

// Where the kernel puts registers at a signal: the frame's sp points at a siginfo_t, then a
// ucontext_t.
constexpr uint64_t kSignalRegisters =
    sizeof(siginfo_t) + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, regs);
constexpr uint64_t kSignalFp = kSignalRegisters + 29 * 8, kSignalLink = kSignalFp + 8,
                   kSignalSp = kSignalFp + 16, kSignalPc = kSignalFp + 24;

[[gnu::always_inline]] inline Registers registers_here() {
  Registers at;
  __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
                   : "=&r"(at.pc), "=&r"(at.sp), "=&r"(at.fp), "=&r"(at.link));
  at.sp_is_known = true;
  return at;
}

Registers registers_of(const void* context) {
  const auto& saved = static_cast<const ucontext_t*>(context)->uc_mcontext;
  return {saved.pc, saved.sp, saved.regs[29], saved.regs[30], true};
}

// Packed: three offsets in units of 8 bytes, and what they are offsets from.
constexpr unsigned kSavedAt = 8, kReturnAt = 26, kOffsetAt = 44;
constexpr int kSmallBits = 18, kOffsetBits = 20;

bool fits_units(int64_t offset, int bits) {
  return offset % 8 == 0 && offset / 8 < int64_t{1} << (bits - 1) &&
         offset / 8 >= -(int64_t{1} << (bits - 1));
}

uint64_t units(int64_t offset, int bits) {
  return static_cast<uint64_t>(offset / 8) & ((uint64_t{1} << bits) - 1);
}

uint64_t pack(const FrameRule& rule) {
  if (!fits_units(rule.offset, kOffsetBits) || !fits_units(rule.saved_offset, kSmallBits) ||
      !fits_units(rule.return_offset, kSmallBits)) {
    return static_cast<uint64_t>(FrameRule::Base::unknown);
  }
  return static_cast<uint64_t>(rule.base) | static_cast<uint64_t>(rule.saved) << 3 |
         static_cast<uint64_t>(rule.returns) << 5 |
         units(rule.saved_offset, kSmallBits) << kSavedAt |
         units(rule.return_offset, kSmallBits) << kReturnAt |
         units(rule.offset, kOffsetBits) << kOffsetAt;
}

int32_t unpack_offset(uint64_t word, unsigned at, int bits) {
  return static_cast<int32_t>(static_cast<int64_t>(word << (64 - at - bits)) >> (64 - bits)) * 8;
}

FrameRule unpack(uint64_t word) {
  FrameRule rule;
  rule.base = static_cast<FrameRule::Base>(word & 7);
  rule.saved = static_cast<FrameRule::Saved>(word >> 3 & 3);
  rule.returns = static_cast<FrameRule::Saved>(word >> 5 & 3);
  rule.saved_offset = unpack_offset(word, kSavedAt, kSmallBits);
  rule.return_offset = unpack_offset(word, kReturnAt, kSmallBits);
  rule.offset = unpack_offset(word, kOffsetAt, kOffsetBits);
  return rule;
}

// The code that handlers return to. Kernels since 5.8 describe it nowhere:
//   mov x8, #139 (rt_sigreturn); svc #0
// `address` as in rule_word_at(): within an instruction, or one byte before it.
bool is_signal_return(uint64_t address) {
  constexpr uint64_t kCode = 0xd4000001d2801168u;
  const uint64_t at = (address + 1) & ~uint64_t{3};
  if (!page_is_readable(at & ~(kPage - 1)) || !page_is_readable((at + 7) & ~(kPage - 1))) {
    return false;
  }
  return load_word(at) == kCode;
}

uint64_t rule_word_at(uint64_t address) {
  FrameRule rule;
  if (is_signal_return(address)) {
    rule.base = FrameRule::Base::signal_frame;
    return pack(rule);
  }
  return find_frame_rule(address, rule) ? pack(rule) : kNowhere;
}

// xpaclri, of the instructions that do nothing where a processor does not know them.
uint64_t without_signature(uint64_t address) {
  register uint64_t link __asm__("x30") = address;
  __asm__("hint 7" : "+r"(link));
  return link;
}

bool is_in_file(uint64_t return_address) {
  FrameRule ignored;
  return return_address >= kPage && find_frame_rule(return_address - 1, ignored);
}

// Code without information. In a file it is mostly an entry of the table of outside functions
// (PLT): where the thread is in one, its caller's address is in x30. Other code perhaps keeps a
// frame pointer. Either is believed if it leads to a caller in a file that is mapped.
bool step_without_rule(Registers& at, StackMemory& memory, bool here, bool in_file) {
  const uint64_t link = without_signature(at.link);
  if (here && in_file && is_in_file(link)) {
    at.pc = link;
    return true;
  }
  uint64_t caller = 0, frame = 0;
  if (at.fp < at.sp || at.fp - at.sp > kMostUnnamed) return false;
  memory.guess();
  if (!memory.read(at.fp, frame) || !memory.read(at.fp + 8, caller)) return false;
  caller = without_signature(caller);
  if (!is_in_file(caller)) return false;
  // Compilers put the record anywhere in the frame: where that ends is not known.
  at = {caller, at.fp + 16, frame, 0, false};
  return true;
}

bool step_by_signal_frame(Registers& at, StackMemory& memory) {
  const uint64_t frame = at.sp;
  return at.sp_is_known && memory.read(frame + kSignalPc, at.pc) &&
         memory.read(frame + kSignalFp, at.fp) && memory.read(frame + kSignalLink, at.link) &&
         memory.read(frame + kSignalSp, at.sp);
}

// The end of a frame whose stack pointer is not known: where it keeps a frame record, x29 points at
// that.
bool has_record(const FrameRule& rule) {
  return rule.saved == FrameRule::Saved::at_end && rule.returns == FrameRule::Saved::at_end &&
         rule.return_offset == rule.saved_offset + 8;
}

inline bool step(Registers& at, StackMemory& memory, uint64_t word, bool& exact) {
  const bool here = exact;
  exact = false;
  if (word == kNowhere) return step_without_rule(at, memory, here, false);
  const FrameRule rule = unpack(word);
  const auto far = [](uint64_t base, int64_t offset) {
    return base + static_cast<uint64_t>(offset);
  };
  bool guessed = false;
  uint64_t end = 0;
  switch (rule.base) {
    case FrameRule::Base::stack:
      guessed = !at.sp_is_known;
      end = guessed && has_record(rule) ? far(at.fp, -int64_t{rule.saved_offset})
                                        : far(at.sp, rule.offset);
      break;
    case FrameRule::Base::frame: end = far(at.fp, rule.offset); break;
    case FrameRule::Base::loaded:
      if (!memory.read(far(at.fp, rule.offset), end)) return false;
      break;
    case FrameRule::Base::signal_frame: exact = true; return step_by_signal_frame(at, memory);
    case FrameRule::Base::outermost: return false;
    case FrameRule::Base::unknown: return step_without_rule(at, memory, here, true);
  }
  // Callers lie further out, but for a function's that has put nothing on the stack.
  const bool in_link = rule.returns == FrameRule::Saved::no;
  if (in_link ? !here || end < at.sp : end <= at.sp) return false;
  uint64_t caller = at.link;
  if (!in_link) {
    const uint64_t base = rule.returns == FrameRule::Saved::at_end ? end : at.fp;
    if (!memory.read(far(base, rule.return_offset), caller)) return false;
  }
  if (rule.saved != FrameRule::Saved::no) {
    const uint64_t base = rule.saved == FrameRule::Saved::at_end ? end : at.fp;
    if (!memory.read(far(base, rule.saved_offset), at.fp)) return false;
  }
  at.pc = without_signature(caller);
  at.sp = end;
  at.sp_is_known = true;
  return at.pc != 0 && (!guessed || is_in_file(at.pc));
}

}  // namespace
}  // namespace gpuprof
