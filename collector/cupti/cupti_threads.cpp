// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_threads.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collector/base/os.h"

namespace gpuprof {
namespace {

constexpr const char* kTasks = "/proc/self/task";

struct Tids {
  uint32_t number[4096];  // of a program with more threads nothing is known
  size_t count;

  bool has(uint32_t tid) const {
    for (size_t i = 0; i < count; ++i) {
      if (number[i] == tid) return true;
    }
    return false;
  }
  // False: there is no room.
  bool add(uint32_t tid) {
    if (count == sizeof number / sizeof *number) return false;
    number[count++] = tid;
    return true;
  }
};

Tids g_before;
struct {
  uint32_t number[16];
  size_t count;
} g_cupti;

uint32_t tid_of(const char* name) {
  return static_cast<uint32_t>(std::strtoul(name, nullptr, 10));  // 0: "." and ".."
}

bool blocks_all_signals() {
  sigset_t blocked;
  if (::sigprocmask(SIG_BLOCK, nullptr, &blocked) != 0) return false;
  for (int number = 1; number < 32; ++number) {
    if (number != SIGKILL && number != SIGSTOP && ::sigismember(&blocked, number) != 1) {
      return false;
    }
  }
  return true;
}

// As the kernel shows it, of signals 1 to 31 without SIGKILL and SIGSTOP.
bool thread_blocks_all_signals(uint32_t tid) {
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "%s/%u/status", kTasks, tid);
  if (!read_small_file(path, text, sizeof text)) return false;
  const char* const line = std::strstr(text, "\nSigBlk:");
  if (!line) return false;
  constexpr uint64_t kAll = 0x7fffffffull & ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1));
  return (std::strtoull(line + 8, nullptr, 16) & kAll) == kAll;
}

bool note_before(const char* name, void* full) {
  const uint32_t tid = tid_of(name);
  if (tid != 0 && !g_before.add(tid)) *static_cast<bool*>(full) = true;
  return *static_cast<bool*>(full);
}

bool note_new(const char* name, void*) {
  const uint32_t tid = tid_of(name);
  if (tid == 0 || g_before.has(tid) || !thread_blocks_all_signals(tid)) return false;
  if (g_cupti.count < sizeof g_cupti.number / sizeof *g_cupti.number) {
    g_cupti.number[g_cupti.count++] = tid;
  }
  return false;
}

}  // namespace

CuptiThreadsWatch::CuptiThreadsWatch() : watches_(blocks_all_signals()) {
  g_before.count = 0;
  bool full = false;
  if (watches_) any_entry(kTasks, note_before, &full);
  watches_ = watches_ && !full && g_before.count != 0;
}

CuptiThreadsWatch::~CuptiThreadsWatch() {
  if (watches_) any_entry(kTasks, note_new, nullptr);
}

uint32_t cupti_threads() {
  uint32_t alive = 0;
  for (size_t i = 0; i < g_cupti.count; ++i) {
    // A number that a later thread of the program's has got is not CUPTI's.
    if (thread_blocks_all_signals(g_cupti.number[i])) ++alive;
  }
  return alive;
}

void forget_cupti_threads() { g_cupti.count = 0; }

}  // namespace gpuprof
