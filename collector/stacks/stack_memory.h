// SPDX-License-Identifier: Apache-2.0
// Reads a stack's words without a fault. Any thread, also in a signal handler.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace gpuprof {
namespace {  // of the one file that includes this

constexpr uint64_t kPage = 4096;      // or a part of one, where the kernel's are larger
constexpr uint64_t kMostPages = 256;  // of one frame

// Pages of stack that this thread is known to be able to read: the first one's number << 28 | how
// many. One word, because a signal handler may come here between any two instructions.
constexpr unsigned kCountBits = 28;
constinit thread_local uint64_t t_readable __attribute__((tls_model("initial-exec"))) = 0;

// By what the kernel says of a signal mask there: it does not look at what it means.
bool page_is_readable(uint64_t page) {
  constexpr long kFault = -14;  // EFAULT; a mask it can read gives EINVAL
#if defined(__x86_64__)
  long result;
  register long mask_bytes __asm__("r10") = 8;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_rt_sigprocmask), "D"(-1L), "S"(page), "d"(0L), "r"(mask_bytes)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long result __asm__("x0") = -1;
  register uint64_t mask __asm__("x1") = page;
  register long old_mask __asm__("x2") = 0, mask_bytes __asm__("x3") = 8;
  register long number __asm__("x8") = SYS_rt_sigprocmask;
  __asm__ volatile("svc 0"
                   : "+r"(result)
                   : "r"(mask), "r"(old_mask), "r"(mask_bytes), "r"(number)
                   : "memory");
#endif
  return result != kFault;
}

// Not a C++ access: sanitizers would look at whose memory it is.
uint64_t load_word(uint64_t address) {
  uint64_t out;
#if defined(__x86_64__)
  __asm__ volatile("movq (%1), %0" : "=r"(out) : "r"(address) : "memory");
#elif defined(__aarch64__)
  __asm__ volatile("ldr %0, [%1]" : "=r"(out) : "r"(address) : "memory");
#endif
  return out;
}

// Reads words where there is memory: of the pages that the thread was seen to have, or can be seen
// to have now.
class StackMemory {
 public:
  explicit StackMemory(uint64_t stack_pointer) {
    const uint64_t word = t_readable;
    low_ = (word >> kCountBits) * kPage;
    high_ = low_ + (word & ((1u << kCountBits) - 1)) * kPage;
    if (stack_pointer >= low_ && stack_pointer < high_) return;
    low_ = stack_pointer & ~(kPage - 1);  // another stack: a signal's, a coroutine's
    high_ = low_ + kPage;
  }

  // What follows hangs on a guess, and may be any memory, which the program may give back later:
  // what is seen of it is not remembered.
  void guess() {
    if (guessed_) return;
    guessed_ = true;
    low_ = high_ = 0;
  }

  bool read(uint64_t address, uint64_t& out) {
    if (address % 8 != 0) return false;
    if ((address < low_ || address >= high_) && !extend(address)) return false;
    out = load_word(address);
    return true;
  }

 private:
  // From what is known up to the address, or only the address's own page where that is elsewhere.
  [[gnu::noinline]] bool extend(uint64_t address) {
    const uint64_t page = address & ~(kPage - 1);
    if (page == 0 || page >> 48 != 0) return false;
    const bool near = page >= high_ && page - high_ < kMostPages * kPage;
    for (uint64_t at = near ? high_ : page; at <= page; at += kPage) {
      if (!page_is_readable(at)) return false;
    }
    if (!near) low_ = page;
    high_ = page + kPage;
    if (!guessed_) t_readable = low_ / kPage << kCountBits | (high_ - low_) / kPage;
    return true;
  }

  uint64_t low_, high_;
  bool guessed_ = false;
};

}  // namespace
}  // namespace gpuprof
