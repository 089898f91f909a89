// SPDX-License-Identifier: Apache-2.0
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <atomic>
#include <iterator>

#include "collector/stacks/frame_rules.h"
#include "collector/stacks/unwind.h"

namespace gpuprof {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostPages = 256;  // of one frame
constexpr uint64_t kMostUnnamed = 1 << 20;
// Where the kernel puts registers at a signal: struct ucontext, which the frame's rsp points at.
constexpr uint64_t kSignalRbp = 120, kSignalRsp = 160, kSignalRip = 168;

// Rules by address, of all threads: sets of one cache line. An entry is two words that are written
// without a lock; one half of another entry does not fit the key.
struct Entry {
  std::atomic<uint64_t> check, rule;
};
struct Set {
  Entry entries[4];
};
constexpr size_t kSetBits = 13;
alignas(kPage) constinit Set g_sets[1 << kSetBits];
static_assert(sizeof(Set) == 64);
constinit std::atomic<uint64_t> g_generation{1};

uint64_t g_own_begin = 0, g_own_end = 0;  // this library's code

// Pages of stack that this thread is known to be able to read: the first one's number << 28 | how
// many. One word, because a signal handler may come here between any two instructions.
constexpr unsigned kCountBits = 28;
constinit thread_local uint64_t t_readable __attribute__((tls_model("initial-exec"))) = 0;

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

uint64_t mixed(uint64_t word) {
  word *= 0x9e3779b97f4a7c15u;
  return word ^ word >> 29;
}

// What a whole rule at an address that no file is mapped at looks like.
constexpr uint64_t kNowhere = ~uint64_t{0};

[[gnu::noinline]] uint64_t find_rule(Set& set, uint64_t key, uint64_t address) {
  FrameRule rule;
  const uint64_t word = find_frame_rule(address, rule) ? pack(rule) : kNowhere;
  // An empty or outdated place, else one that the address chooses.
  Entry* place = &set.entries[address % 4];
  const uint64_t generation = key >> 48;
  for (Entry& entry : set.entries) {
    const uint64_t other = entry.rule.load(std::memory_order_relaxed);
    const uint64_t check = entry.check.load(std::memory_order_relaxed);
    if ((check ^ mixed(other)) >> 48 != generation) {
      place = &entry;
      break;
    }
  }
  place->rule.store(word, std::memory_order_relaxed);
  place->check.store(key ^ mixed(word), std::memory_order_relaxed);
  return word;
}

// `address` lies within the instruction that the frame is at.
inline uint64_t rule_word(uint64_t address, uint64_t generation) {
  const uint64_t key = (address & 0xffffffffffffu) | generation << 48;
  Set& set = g_sets[(address * 0x9e3779b97f4a7c15u) >> (64 - kSetBits)];
  for (Entry& entry : set.entries) {
    const uint64_t word = entry.rule.load(std::memory_order_relaxed);
    if ((entry.check.load(std::memory_order_relaxed) ^ mixed(word)) == key) return word;
  }
  return find_rule(set, key, address);
}

// By what the kernel says of a signal mask there: it does not look at what it means.
bool page_is_readable(uint64_t page) {
  constexpr long kFault = -14;  // EFAULT; a mask it can read gives EINVAL
  long result;
  register long mask_bytes __asm__("r10") = 8;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(SYS_rt_sigprocmask), "D"(-1L), "S"(page), "d"(0L), "r"(mask_bytes)
                   : "rcx", "r11", "memory");
  return result != kFault;
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

  bool read(uint64_t address, uint64_t& out) {
    if (address % 8 != 0) return false;
    if ((address < low_ || address >= high_) && !extend(address)) return false;
    // Not a C++ access: sanitizers would look at whose memory it is.
    __asm__ volatile("movq (%1), %0" : "=r"(out) : "r"(address) : "memory");
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
    t_readable = low_ / kPage << kCountBits | (high_ - low_) / kPage;
    return true;
  }

  uint64_t low_, high_;
};

struct Registers {
  uint64_t rip, rsp, rbp;
};

// Code without information: perhaps it keeps a frame pointer. Believed if that leads to a caller in
// a file that is mapped.
bool step_by_frame_pointer(Registers& at, StackMemory& memory) {
  uint64_t caller = 0, rbp = 0;
  if (at.rbp < at.rsp || at.rbp - at.rsp > kMostUnnamed) return false;
  if (!memory.read(at.rbp, rbp) || !memory.read(at.rbp + 8, caller)) return false;
  FrameRule ignored;
  if (caller < kPage || !find_frame_rule(caller - 1, ignored)) return false;
  at = {caller, at.rbp + 16, rbp};
  return true;
}

bool step_by_signal_frame(Registers& at, StackMemory& memory) {
  const uint64_t context = at.rsp;
  return memory.read(context + kSignalRip, at.rip) && memory.read(context + kSignalRbp, at.rbp) &&
         memory.read(context + kSignalRsp, at.rsp);
}

// From one frame to its caller's; false: there is none, or none can be told.
inline bool step(Registers& at, StackMemory& memory, uint64_t word, bool& exact) {
  exact = false;
  if (word == kNowhere) return step_by_frame_pointer(at, memory);
  const FrameRule rule = unpack(word);
  uint64_t end = 0;
  switch (rule.base) {
    case FrameRule::Base::stack: end = at.rsp + static_cast<uint64_t>(int64_t{rule.offset}); break;
    case FrameRule::Base::frame: end = at.rbp + static_cast<uint64_t>(int64_t{rule.offset}); break;
    case FrameRule::Base::loaded:
      if (!memory.read(at.rbp + static_cast<uint64_t>(int64_t{rule.offset}), end)) return false;
      break;
    case FrameRule::Base::signal_frame: exact = true; return step_by_signal_frame(at, memory);
    case FrameRule::Base::outermost: return false;
    case FrameRule::Base::unknown: return step_by_frame_pointer(at, memory);
  }
  if (end <= at.rsp) return false;  // callers lie further out
  const auto offset = static_cast<uint64_t>(int64_t{rule.saved_offset});
  if (rule.saved != FrameRule::Saved::no) {
    const uint64_t base = rule.saved == FrameRule::Saved::at_end ? end : at.rbp;
    if (!memory.read(base + offset, at.rbp)) return false;
  }
  at.rsp = end;
  return memory.read(end - 8, at.rip) && at.rip != 0;
}

// Where this library's code lies: only if it is a library (a test links it into its program).
int find_own_code(dl_phdr_info* info, size_t, void*) {
  const auto here = reinterpret_cast<uint64_t>(&find_own_code);
  if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || here - begin >= segment.p_memsz) continue;
    g_own_begin = begin;
    g_own_end = begin + segment.p_memsz;
    return 1;
  }
  return 0;
}

}  // namespace

void prepare_unwind() {
  // A page each, before a call waits for it.
  for (size_t i = 0; i < std::size(g_sets); i += kPage / sizeof(Set)) {
    g_sets[i].entries[0].check.fetch_or(0, std::memory_order_relaxed);
  }
  prepare_frame_rules();
  ::dl_iterate_phdr(find_own_code, nullptr);
}

void forget_frame_rules() {
  // 15 bits of it are in the keys: never 0, which is what an empty entry has.
  const uint64_t next = (g_generation.load(std::memory_order_relaxed) + 1) & 0x7fff;
  g_generation.store(next ? next : 1, std::memory_order_relaxed);
}

namespace {

size_t unwind_from(Registers at, uint64_t* frames, size_t size, uint64_t* stack_pointers) {
  StackMemory memory(at.rsp);
  const uint64_t generation = g_generation.load(std::memory_order_relaxed);
  bool exact = true;
  size_t count = 0;
  // More frames than are kept may be this library's.
  for (size_t steps = 0; steps < size + 64 && count < size; ++steps) {
    const uint64_t word = rule_word(exact ? at.rip : at.rip - 1, generation);
    if (!step(at, memory, word, exact)) break;
    if (at.rip - g_own_begin < g_own_end - g_own_begin) continue;
    if (stack_pointers) stack_pointers[count] = at.rsp;
    frames[count++] = at.rip;
  }
  return count;
}

}  // namespace

[[gnu::noinline]] size_t unwind(uint64_t* frames, size_t size, uint64_t* stack_pointers) {
  Registers at;
  __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                   : "=&r"(at.rip), "=&r"(at.rsp), "=&r"(at.rbp));
  return unwind_from(at, frames, size, stack_pointers);
}

size_t unwind_interrupted(const void* context, uint64_t* frames, size_t size,
                          uint64_t* stack_pointers) {
  const auto& saved = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const Registers at{static_cast<uint64_t>(saved[REG_RIP]), static_cast<uint64_t>(saved[REG_RSP]),
                     static_cast<uint64_t>(saved[REG_RBP])};
  if (at.rip - g_own_begin < g_own_end - g_own_begin) {
    return unwind_from(at, frames, size, stack_pointers);
  }
  frames[0] = at.rip + 1;
  stack_pointers[0] = at.rsp;
  return 1 + unwind_from(at, frames + 1, size - 1, stack_pointers + 1);
}

}  // namespace gpuprof
