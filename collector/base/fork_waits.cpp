// SPDX-License-Identifier: Apache-2.0
#include "collector/base/fork_waits.h"

#include <atomic>
#include <cstdint>

#include "collector/base/clock.h"
#include "collector/base/idle.h"
#include "collector/base/libc.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMs = 1000000, kLongest = 100 * kMs;

constinit std::atomic<uint32_t> g_forks{0};   // that wait or run
constinit std::atomic<uint32_t> g_scopes{0};  // on all threads
// A fork gave up on a scope, as on a file system that does not answer: the next ones do not try.
constinit std::atomic<bool> g_is_stuck{false};
constinit thread_local uint32_t t_scopes __attribute__((tls_model("initial-exec"))) = 0;

// Until `word` is `wanted`, which whoever changes it tells.
void wait_until(std::atomic<uint32_t>& word, uint32_t wanted, uint64_t begun) {
  for (uint32_t seen; (seen = word.load()) != wanted && monotonic_ns() - begun < kLongest;) {
    futex_wait(word, seen, kMs);
  }
}

void enter() {
  g_scopes.fetch_add(1);
  ++t_scopes;
}

void leave() {
  --t_scopes;
  if (g_scopes.fetch_sub(1) == 1 && g_is_stuck.load()) g_is_stuck = false;
  if (g_forks.load()) futex_wake_all(g_scopes);
}

void before_fork() {
  g_forks.fetch_add(1);
  if (g_scopes.load() == t_scopes) return;  // this thread's own: a signal's handler forks
  if (g_is_stuck.load()) return;
  const ErrnoGuard keep;
  wait_until(g_scopes, t_scopes, monotonic_ns());
  g_is_stuck = g_scopes.load() != t_scopes;
}

void after_fork_in_parent() {
  if (g_forks.fetch_sub(1) == 1) futex_wake_all(g_forks);
}

void after_fork_in_child() {
  g_forks = 0;
  g_scopes = t_scopes;
  g_is_stuck = false;
}

}  // namespace

ForkWaitsScope::ForkWaitsScope() {
  const bool nested = t_scopes > 0;
  enter();
  if (nested || g_forks.load() == 0) return;
  const uint64_t begun = monotonic_ns();
  do {
    leave();
    wait_until(g_forks, 0, begun);
    enter();
  } while (g_forks.load() != 0 && monotonic_ns() - begun < kLongest);
}

ForkWaitsScope::~ForkWaitsScope() { leave(); }

bool a_fork_runs() { return g_forks.load() != 0; }

GPUPROF_IDLE_CODE void let_forks_wait() {
  if (!__register_atfork) return;
  __register_atfork(before_fork, after_fork_in_parent, nullptr, __dso_handle);
  at_fork_in_child(after_fork_in_child);
}

}  // namespace gpuprof
