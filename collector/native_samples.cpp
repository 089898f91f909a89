// SPDX-License-Identifier: Apache-2.0
#include "collector/native_samples.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "collector/clock.h"
#include "collector/frame_rules.h"
#include "collector/interrupted_call.h"
#include "collector/log.h"
#include "collector/os.h"
#include "collector/session.h"
#include "collector/unwind.h"

namespace gpuprof {
namespace {

constexpr int kSignal = SIGURG;
// A thread that runs takes microseconds. It takes longer where what the unwinder reads must come
// from disk, or where the thread is kept from going on: then there is none of it meanwhile.
constexpr uint64_t kAnswerNs = 2'000'000;

// A request and its answer: one thread at a time.
enum State : uint32_t { kIdle, kAsked, kAnswering, kAnswered };
constinit std::atomic<uint32_t> g_state{kIdle};
constinit std::atomic<uint32_t> g_asked{0};  // the thread
constinit NativeStack g_answer{};            // whoever sets kAnswering

constinit std::atomic<bool> g_on{false};
constinit const char* g_note = "";

void on_signal(int, siginfo_t* info, void* context) {
  const ErrnoGuard keep_errno;
  if (info->si_code != SI_TKILL || info->si_pid != static_cast<pid_t>(session().pid)) return;
  make_interrupted_call_again(context);
  if (g_asked.load(std::memory_order_acquire) != current_tid()) return;
  uint32_t asked = kAsked;
  if (!g_state.compare_exchange_strong(asked, kAnswering, std::memory_order_acq_rel)) return;
  g_answer.count =
      unwind_interrupted(context, g_answer.frames, kMaxStackFrames, g_answer.stack_pointers);
  g_state.store(kAnswered, std::memory_order_release);
  futex_wake_all(g_state);
}

struct sigaction our_action() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  // On the program's own stack for signals, where a thread has one: its stack may be small.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  return action;
}

bool is_ours() {
  struct sigaction now {};
  return ::sigaction(kSignal, nullptr, &now) == 0 && now.sa_flags & SA_SIGINFO &&
         now.sa_sigaction == on_signal;
}

bool is_nobodys() {
  struct sigaction now {};
  return ::sigaction(kSignal, nullptr, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
         now.sa_handler == SIG_DFL;
}

// The processor time of a thread; of one that runs it is that of now. 0: it has ended.
uint64_t cpu_ns_of(uint32_t tid) {
  constexpr uint32_t kOfOneThread = 6;  // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
  timespec time{};
  if (::clock_gettime(static_cast<clockid_t>(~tid << 3 | kOfOneThread), &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Whether the thread has been on a processor since then, long enough not to be on its way out of a
// call that it was woken in.
bool has_run(uint32_t tid, const ThreadLook& since) {
  constexpr uint64_t kLongEnoughNs = 5'000;
  const uint64_t passed = monotonic_ns() - since.time_ns, ran = cpu_ns_of(tid) - since.cpu_ns;
  return passed >= kLongEnoughNs && ran >= passed / 4 * 3;
}

// What a thread does. The kernel's answer is "running", or the number of the system call that it
// waits in, arguments, sp and pc; -1 for the number where it waits outside one (a page fault). It
// is "running", too, where a thread that was woken in a call waits for a processor.
enum class Doing : uint8_t { unknown, runs, can_be_resumed, must_not_be_woken, waits_for_cpu };
Doing doing(uint32_t tid, const ThreadLook& since, uint64_t& pc) {
  char path[64], text[256];
  if (has_run(tid, since)) return Doing::runs;
  std::snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
  if (!read_small_file(path, text, sizeof text)) return Doing::unknown;
  if (std::strncmp(text, "running", 7) == 0) {
    return has_run(tid, since) ? Doing::runs : Doing::waits_for_cpu;
  }
  const char* const last = std::strrchr(text, ' ');
  if (!last) return Doing::unknown;
  pc = std::strtoull(last, nullptr, 16);
  switch (std::strtol(text, nullptr, 10)) {
    case -1: return Doing::runs;
    // Resumed by the kernel after a handler with SA_RESTART, whatever their arguments; see
    // signal(7). Of the rest some are, in some cases.
    case SYS_read:
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_openat:
    case SYS_wait4:
    case SYS_waitid: return Doing::can_be_resumed;
    default: return Doing::must_not_be_woken;
  }
}

bool wait_for_answer() {
  const uint64_t begun = monotonic_ns();
  for (;;) {
    const uint32_t state = g_state.load(std::memory_order_acquire);
    if (state == kAnswered) return true;
    const uint64_t waited = monotonic_ns() - begun;
    if (waited >= kAnswerNs) return false;
    futex_wait(g_state, state, kAnswerNs - waited);
  }
}

void give_up(const char* why) {
  g_on.store(false);
  if (g_note[0]) return;
  g_note = why;
  log_line(LogLevel::warn, "no native frames in host samples: %s", why);
}

// True: g_answer is the thread's.
bool ask(uint32_t tid) {
  if (g_state.load(std::memory_order_acquire) == kAnswering) return false;  // an earlier one
  g_asked.store(tid, std::memory_order_relaxed);
  g_state.store(kAsked, std::memory_order_release);
  if (::syscall(SYS_tgkill, session().pid, tid, kSignal) == 0 && wait_for_answer()) return true;
  uint32_t asked = kAsked;
  g_state.compare_exchange_strong(asked, kIdle);  // from here on it comes too late
  return false;
}

}  // namespace

void native_samples_window_begins() {
  if (!activity_on(Activity::samples) || !activity_on(Activity::samples_native)) return;
  if (g_note[0]) return;  // said once
  uint64_t pc = 0;
  if (!stacks_are_on()) return give_up("call stacks cannot be recorded here");
  if (!frame_rules_need_no_lock()) return give_up("they need glibc 2.35 or newer");
  if (doing(session().pid, {}, pc) == Doing::unknown) {
    return give_up("the kernel does not say what threads do (/proc/self/task/*/syscall)");
  }
  const struct sigaction ours = our_action();
  if (!is_ours() && (!is_nobodys() || ::sigaction(kSignal, &ours, nullptr) != 0)) {
    return give_up("the program handles SIGURG in its own way");
  }
  g_on.store(true);
}

// A signal that is still on its way then does nothing.
void native_samples_window_ends() {
  if (!g_on.exchange(false) || !is_ours()) return;
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  ::sigaction(kSignal, &none, nullptr);
}

bool native_samples_on() { return g_on.load(std::memory_order_relaxed); }
const char* native_samples_note() { return g_note; }

ThreadLook look_at_thread(uint32_t tid) {
  const uint64_t cpu_ns = cpu_ns_of(tid);
  return {cpu_ns, monotonic_ns()};
}

bool take_native_stack(uint32_t tid, const ThreadLook& since, NativeStack& out) {
  uint64_t pc = 0;
  switch (doing(tid, since, pc)) {
    case Doing::unknown:
    case Doing::waits_for_cpu: return false;
    case Doing::must_not_be_woken:
      out.count = 1;
      out.frames[0] = pc;
      out.stack_pointers[0] = 0;
      return true;
    case Doing::runs:
    case Doing::can_be_resumed: break;
  }
  if (!is_ours()) {
    if (native_samples_on()) give_up("the program has taken SIGURG for itself");
    return false;
  }
  if (!ask(tid)) return false;
  std::memcpy(&out, &g_answer, sizeof out);
  g_state.store(kIdle, std::memory_order_release);
  return out.count != 0;
}

void forget_native_samples() {
  native_samples_window_ends();
  g_state = kIdle;
  g_note = "";
}

}  // namespace gpuprof
