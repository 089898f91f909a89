// SPDX-License-Identifier: Apache-2.0
// Our unwinder against glibc's on the same stack, in every form of frame that a program may have.
#include "collector/stacks/unwind.h"

#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "collector/stacks/frame_rules.h"

// Keeps a call from becoming a jump, which would leave no frame.
#define KEEP_FRAME __asm__ volatile("")

namespace gpuprof {
namespace {

constexpr size_t kMost = 256;

struct Both {
  uint64_t ours[kMost];
  void* glibc[kMost];
  void* libunwind[kMost];
  size_t our_count = 0, glibc_count = 0, libunwind_count = 0;
  // Not on other threads: what it leaves to a thread's end ThreadSanitizer cannot follow.
  bool with_libunwind = false;
};
Both g_both;

// A third opinion. Opened, not linked: libunwind has a backtrace() of its own that would take
// glibc's place.
using Backtrace = int (*)(void**, int);
Backtrace libunwind() {
  static void* const library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  static void* const found = library ? dlsym(library, "unw_backtrace") : nullptr;
  return reinterpret_cast<Backtrace>(found);
}

// Both from the same function, so that all frames but the first are the same.
[[gnu::noinline]] void take_both(void*) {
  g_both.our_count = unwind(g_both.ours, kMost);
  g_both.glibc_count = static_cast<size_t>(::backtrace(g_both.glibc, kMost));
  if (g_both.with_libunwind) {
    const Backtrace take = libunwind();
    g_both.libunwind_count = static_cast<size_t>(take(g_both.libunwind, kMost));
  }
  KEEP_FRAME;
}

// The return addresses from the caller of take_both() on.
std::vector<uint64_t> ours() {
  if (g_both.our_count == 0) return {};
  return {g_both.ours + 1, g_both.ours + g_both.our_count};
}
// Sanitizers stand between the program and glibc's: a frame more.
std::vector<uint64_t> glibcs() {
  std::vector<uint64_t> out;
  for (size_t i = 1; i < g_both.glibc_count; ++i) {
    out.push_back(reinterpret_cast<uint64_t>(g_both.glibc[i]));
  }
  const std::vector<uint64_t> mine = ours();
  if (out.size() == mine.size() + 1) out.erase(out.begin());
  return out;
}

void expect_same(size_t at_least) {
  EXPECT_EQ(ours(), glibcs());
  EXPECT_GE(g_both.our_count, at_least);
}

class Unwind : public testing::Test {
 protected:
  void SetUp() override {
    prepare_unwind();
    take_both(nullptr);  // glibc loads what it needs
    g_both = {};
  }
};

[[gnu::noinline]] void recurse(int depth) {
  if (depth > 1) {
    recurse(depth - 1);
  } else {
    take_both(nullptr);
  }
  KEEP_FRAME;
}

TEST_F(Unwind, plain_frames) {
  recurse(20);
  expect_same(20);
}

TEST_F(Unwind, a_second_time_from_what_is_kept) {
  for (int i = 0; i < 3; ++i) recurse(20);
  expect_same(20);
}

TEST_F(Unwind, as_libunwind_does) {
  if (!libunwind()) GTEST_SKIP() << "no libunwind.so.8";
  g_both.with_libunwind = true;
  recurse(20);
  ASSERT_GT(g_both.libunwind_count, 20u);
  std::vector<uint64_t> theirs;
  for (size_t i = 1; i < g_both.libunwind_count; ++i) {
#if defined(__aarch64__)
    constexpr uint64_t kBefore =
        1;  // there libunwind names a byte of the call, not what comes after
#else
    constexpr uint64_t kBefore = 0;
#endif
    theirs.push_back(reinterpret_cast<uint64_t>(g_both.libunwind[i]) + kBefore);
  }
  EXPECT_EQ(ours(), theirs);
}

TEST_F(Unwind, stops_at_the_size_given) {
  recurse(20);
  uint64_t few[5];
  EXPECT_EQ(unwind(few, 5), 5u);
}

struct Places {
  uint64_t frames[kMost], stack_pointers[kMost], locals[8];
  size_t count;
};

[[gnu::noinline]] void note_places(Places& places, size_t depth) {
  volatile uint64_t local = depth;
  places.locals[depth] = reinterpret_cast<uint64_t>(&local);
  if (depth > 0) {
    note_places(places, depth - 1);
  } else {
    places.count = unwind(places.frames, kMost, places.stack_pointers);
  }
  KEEP_FRAME;
}

TEST_F(Unwind, says_where_the_memory_of_each_frame_begins) {
  Places places{};
  note_places(places, 7);
  ASSERT_GT(places.count, 9u);
  for (size_t depth = 0; depth < 8; ++depth) {
    EXPECT_GE(places.locals[depth], places.stack_pointers[depth]);
    EXPECT_LT(places.locals[depth], places.stack_pointers[depth + 1]);
  }
}

[[gnu::noinline]] void with_alloca(size_t bytes) {
  auto* const memory = static_cast<volatile char*>(alloca(bytes));
  memory[0] = 1;
  recurse(2);
  memory[bytes - 1] = 1;
}

TEST_F(Unwind, frames_of_variable_size) {
  for (const size_t bytes : {100, 5000, 300000}) {
    with_alloca(bytes);
    expect_same(4);
  }
}

[[gnu::noinline]] void with_aligned_stack(size_t bytes) {
  alignas(64) volatile char aligned[256];
  auto* const memory = static_cast<volatile char*>(alloca(bytes));
  aligned[0] = 1;
  memory[0] = aligned[0];
  recurse(2);
  aligned[255] = 1;
  memory[bytes - 1] = aligned[255];
}

TEST_F(Unwind, frames_that_align_the_stack) {
  with_aligned_stack(700);
  expect_same(4);
}

int compare(const void* a, const void* b) {
  take_both(nullptr);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

TEST_F(Unwind, through_a_library) {
  int numbers[] = {3, 1};
  std::qsort(numbers, 2, sizeof numbers[0], compare);
  expect_same(4);
}

TEST_F(Unwind, another_thread) {
  std::thread([] { recurse(10); }).join();
  expect_same(11);
}

void on_signal(int) { recurse(3); }

[[gnu::noinline]] void raise_at(int depth, bool fault) {
  if (depth > 1) {
    raise_at(depth - 1, fault);
  } else if (fault) {
#if defined(__x86_64__)
    __asm__ volatile("ud2");  // the interrupted instruction, not one after a call
#elif defined(__aarch64__)
    __asm__ volatile("udf #0");  // likewise
#endif
  } else {
    ::raise(SIGUSR1);
  }
  KEEP_FRAME;
}

void skip_instruction(int, siginfo_t*, void* context) {
  recurse(3);
#if defined(__x86_64__)
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
#elif defined(__aarch64__)
  static_cast<ucontext_t*>(context)->uc_mcontext.pc += 4;
#endif
}

TEST_F(Unwind, signal_handler) {
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  ::sigaction(SIGUSR1, &action, &before);
  raise_at(5, false);
  ::sigaction(SIGUSR1, &before, nullptr);
  expect_same(10);
}

TEST_F(Unwind, signal_handler_on_its_own_stack_between_two_instructions) {
  std::vector<char> memory(1 << 16);
  stack_t stack{}, old{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ASSERT_EQ(::sigaltstack(&stack, &old), 0);
  struct sigaction action {
  }, before{};
  action.sa_sigaction = skip_instruction;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGILL, &action, &before);
  raise_at(5, true);
  ::sigaction(SIGILL, &before, nullptr);
  ::sigaltstack(&old, nullptr);
  expect_same(10);
}

ucontext_t g_main_context, g_coroutine;
void run_coroutine() { recurse(6); }

// On a stack that ends where memory ends, whose first function has no caller to speak of.
TEST_F(Unwind, coroutine) {
  const size_t bytes = 65536;
  void* const memory =
      ::mmap(nullptr, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(::mprotect(static_cast<char*>(memory) + bytes, 4096, PROT_NONE), 0);
  for (int i = 0; i < 2; ++i) {
    ::getcontext(&g_coroutine);
    g_coroutine.uc_stack.ss_sp = memory;
    g_coroutine.uc_stack.ss_size = bytes;
    g_coroutine.uc_link = &g_main_context;
    ::makecontext(&g_coroutine, run_coroutine, 0);
    ::swapcontext(&g_main_context, &g_coroutine);
    const std::vector<uint64_t> all = glibcs(), found = ours();
    ASSERT_GE(found.size(), 7u);
    EXPECT_TRUE(std::equal(found.begin(), found.begin() + 7, all.begin()));
    recurse(3);  // and back on the stack from before
    expect_same(3);
  }
  ::munmap(memory, bytes + 4096);
}

// Code without any information that sets up a frame with a frame pointer, calls its argument and
// returns.
#if defined(__x86_64__)
const unsigned char kUnknownCode[] = {0x55, 0x48, 0x89, 0xe5, 0x31, 0xff, 0xff, 0xd6, 0x5d, 0xc3};
constexpr uint64_t kAfterCall = 8;
#elif defined(__aarch64__)
// stp x29, x30, [sp, #-16]!; mov x29, sp; mov x0, #0; blr x1; ldp x29, x30, [sp], #16; ret
const uint32_t kUnknownCode[] = {0xa9bf7bfd, 0x910003fd, 0xd2800000,
                                 0xd63f0020, 0xa8c17bfd, 0xd65f03c0};
constexpr uint64_t kAfterCall = 16;
#endif

[[gnu::noinline]] void call_unknown(void* code) {
  reinterpret_cast<void (*)(void*, void (*)(void*))>(code)(nullptr, take_both);
  KEEP_FRAME;
}

TEST_F(Unwind, code_without_information_by_its_frame_pointer) {
  void* const code =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, kUnknownCode, sizeof kUnknownCode);
  __builtin___clear_cache(static_cast<char*>(code), static_cast<char*>(code) + sizeof kUnknownCode);
  call_unknown(code);
  const std::vector<uint64_t> with = ours();
  take_both(nullptr);
  const std::vector<uint64_t> without = ours();
  ::munmap(code, 4096);
  // take_both's caller is the code, then call_unknown, then this test, as without.
  ASSERT_GE(with.size(), 3u);
  EXPECT_EQ(with[0], reinterpret_cast<uint64_t>(code) + kAfterCall);
  EXPECT_TRUE(std::equal(with.begin() + 3, with.end(), without.begin() + 1, without.end()));
}

// Code without any information that keeps its second argument where others keep the frame pointer,
// and calls its first one.
#if defined(__x86_64__)
const unsigned char kOtherUse[] = {0x55, 0x48, 0x89, 0xf5, 0xff, 0xd7, 0x5d, 0xc3};
#elif defined(__aarch64__)
// stp x29, x30, [sp, #-16]!; mov x29, x1; blr x0; ldp x29, x30, [sp], #16; ret
const uint32_t kOtherUse[] = {0xa9bf7bfd, 0xaa0103fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif

struct CodeAndBuffer {
  char *code, *buffer;
  size_t bytes;
};

// Once while the buffer above the stack is there, and once after it was given back.
void* use_buffer(void* argument) {
  const auto& in = *static_cast<const CodeAndBuffer*>(argument);
  const auto run = reinterpret_cast<void (*)(void (*)(void*), void*)>(in.code);
  run(take_both, in.buffer + in.bytes - 64);
  ::munmap(in.buffer, in.bytes);
  run(take_both, in.buffer + in.bytes - 64);
  return nullptr;
}

TEST_F(Unwind, what_is_read_by_a_guess_may_be_given_back_by_the_program) {
  constexpr size_t kStack = 8 << 20, kBuffer = 256 << 10;  // a sanitizer takes much of a stack
  constexpr int kData = PROT_READ | PROT_WRITE, kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory = ::mmap(nullptr, kStack + kBuffer, kData, kPrivate, -1, 0);
  void* const code = ::mmap(nullptr, 4096, kData | PROT_EXEC, kPrivate, -1, 0);
  ASSERT_TRUE(memory != MAP_FAILED && code != MAP_FAILED);
  std::memcpy(code, kOtherUse, sizeof kOtherUse);
  __builtin___clear_cache(static_cast<char*>(code), static_cast<char*>(code) + sizeof kOtherUse);
  CodeAndBuffer given{static_cast<char*>(code), static_cast<char*>(memory) + kStack, kBuffer};
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, memory, kStack);
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, &attributes, use_buffer, &given), 0);
  ::pthread_join(thread, nullptr);
  EXPECT_EQ(ours().size(), 1u) << "the code has no caller that is known";
  ::munmap(memory, kStack);
  ::munmap(code, 4096);
}

TEST_F(Unwind, nothing_is_kept_of_code_that_was_unmapped) {
  forget_frame_rules();
  recurse(4);
  expect_same(4);
  for (int i = 0; i < 40000; ++i) forget_frame_rules();  // the count goes round
  recurse(4);
  expect_same(4);
}

TEST(FrameRules, no_file_at_an_address) {
  prepare_frame_rules();
  FrameRule rule;
  EXPECT_FALSE(find_frame_rule(4096, rule));
  EXPECT_FALSE(find_frame_rule(reinterpret_cast<uint64_t>(&rule), rule));
  EXPECT_EQ(rule, FrameRule());
}

TEST(FrameRules, address_in_a_file_but_in_no_function) {
  prepare_frame_rules();
  FrameRule rule;
  EXPECT_TRUE(find_frame_rule(reinterpret_cast<uint64_t>(kUnknownCode), rule));
  EXPECT_EQ(rule, FrameRule());
}

// Every function of glibc that has a name, at every fourth byte: what is not understood must be
// said, and nothing else happen.
TEST(FrameRules, all_of_a_library) {
  prepare_frame_rules();
  Dl_info info{};
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&std::qsort), &info), 0);
  const auto begin = reinterpret_cast<uint64_t>(&std::qsort) & ~uint64_t{0xfff};
  size_t known = 0, all = 0;
  for (uint64_t at = begin - 0x8000; at < begin + 0x40000; at += 4) {
    FrameRule rule;
    if (!find_frame_rule(at, rule)) continue;
    ++all;
    known += rule.base != FrameRule::Base::unknown;
  }
  EXPECT_GT(all, 10000u);
  EXPECT_GT(known, all * 8 / 10);
}

}  // namespace
}  // namespace gpuprof
