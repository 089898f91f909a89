// SPDX-License-Identifier: Apache-2.0
#include "collector/samples/native_samples.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/stacks/frame_rules.h"
#include "collector/stacks/unwind.h"

namespace gpuprof {
namespace {

constexpr int kSignal = SIGURG;
// A thread that runs takes microseconds. It takes longer where what the unwinder reads must come
// from disk, or where the thread is kept from going on: then there is none of it meanwhile.
constexpr uint64_t kAnswerNs = 4'000'000;
constexpr long kLetOnNs = 150'000;

// A request and its answer: one thread at a time. The word has a state in its low bits and counts
// requests above, so that whoever comes late cannot take a later request for its own.
enum State : uint32_t { kIdle, kAsked, kAnswering, kAnswered };
constexpr uint32_t kStateBits = 2, kStateMask = (1 << kStateBits) - 1;
constinit std::atomic<uint32_t> g_word{kIdle};
constinit std::atomic<uint32_t> g_asked{0};  // the thread
constinit NativeStack g_answer{};            // whoever sets kAnswering

uint32_t with_state(uint32_t word, State state) { return (word & ~kStateMask) | state; }

constinit std::atomic<bool> g_on{false};
constinit const char* g_note = "";

void on_signal(int, siginfo_t*, void* context) {
  const ErrnoGuard keep_errno;
  uint32_t word = g_word.load(std::memory_order_acquire);
  if ((word & kStateMask) != kAsked || g_asked.load(std::memory_order_acquire) != current_tid()) {
    return;
  }
  const uint32_t answering = with_state(word, kAnswering);
  if (!g_word.compare_exchange_strong(word, answering, std::memory_order_acq_rel)) return;
  g_answer.count =
      unwind_interrupted(context, g_answer.frames, kMaxStackFrames, g_answer.stack_pointers);
  g_word.store(with_state(word, kAnswered), std::memory_order_release);
  futex_wake_all(g_word);
}

struct sigaction our_action() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  // On the program's own stack for signals, where a thread has one: its stack may be small.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // No handler of the program's may leave ours by a jump. Signals of faults cannot wait.
  ::sigfillset(&action.sa_mask);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) {
    ::sigdelset(&action.sa_mask, fault);
  }
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

// Whether the thread has been on a processor all the time since then: it is not on its way out of a
// call that it was woken in.
bool has_run(uint32_t tid, const ThreadLook& since) {
  constexpr uint64_t kLongEnoughNs = 5'000;
  const uint64_t passed = monotonic_ns() - since.time_ns, ran = thread_cpu_ns(tid) - since.cpu_ns;
  // The two looks at its clock lie around those at the time; of a thread that has ended there is
  // none.
  return passed >= kLongEnoughNs && ran >= passed && ran < 2 * passed;
}

// Whether the thread, which is on no processor and could be, has only been put off one: it has not
// begun to wait since an earlier reading of its counts, and run for longer since then than the way
// out of a call takes.
bool was_put_off(uint32_t tid, ThreadCounts& counts) {
  constexpr uint64_t kWayOutNs = 50'000;
  const uint64_t ran = thread_cpu_ns(tid), waits = counts.waits;
  return read_thread_counts(tid, counts) && counts.waits == waits &&
         ran > counts.cpu_ns + kWayOutNs && counts.lets_signal_in;
}

void sleep_ns(long ns) {
  const timespec time{0, ns};
  ::nanosleep(&time, nullptr);
}

// What a thread does. The kernel's answer is "running", also where it waits for a processor, or the
// number of the system call that it waits in, arguments, sp and pc; -1 for the number where it
// waits outside one (a page fault), and pc 0 where it has ended (proc_pid_syscall(5)).
enum class Doing : uint8_t { unknown, runs, waits, was_woken, has_ended };
Doing doing(uint32_t tid, const ThreadLook& since, ThreadCounts& counts, uint64_t& pc) {
  char path[64], text[256];
  if (has_run(tid, since)) return Doing::runs;
  std::snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
  if (!read_small_file(path, text, sizeof text)) return Doing::unknown;
  if (std::strncmp(text, "running", 7) == 0) {
    if (has_run(tid, since) || was_put_off(tid, counts)) return Doing::runs;
    sleep_ns(kLetOnNs);  // it has waited since, but may be past that
    return was_put_off(tid, counts) ? Doing::runs : Doing::was_woken;
  }
  const char* const last = std::strrchr(text, ' ');
  if (!last) return Doing::unknown;
  pc = std::strtoull(last, nullptr, 16);
  return pc ? Doing::waits : Doing::has_ended;
}

bool wait_for_answer() {
  const uint64_t begun = monotonic_ns();
  for (;;) {
    const uint32_t word = g_word.load(std::memory_order_acquire);
    if ((word & kStateMask) == kAnswered) return true;
    const uint64_t waited = monotonic_ns() - begun;
    if (waited >= kAnswerNs) return false;
    futex_wait(g_word, word, kAnswerNs - waited);
  }
}

void give_up(const char* why) {
  g_on.store(false);
  if (g_note[0]) return;
  g_note = why;
  log_line(LogLevel::warn, "no native frames in host samples: %s", why);
}

void leave_signal() {
  g_on.store(false);
  if (!is_ours()) return;
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  ::sigaction(kSignal, &none, nullptr);
}

// True: g_answer is the thread's.
bool ask(uint32_t tid) {
  const uint32_t before = g_word.load(std::memory_order_acquire);
  if ((before & kStateMask) == kAnswering) return false;  // an earlier one
  const uint32_t request = with_state(before + (1 << kStateBits), kAsked);
  g_word.store(with_state(request, kIdle), std::memory_order_release);
  g_asked.store(tid, std::memory_order_release);
  g_word.store(request, std::memory_order_release);
  if (::syscall(SYS_tgkill, session().pid, tid, kSignal) == 0 && wait_for_answer()) return true;
  uint32_t asked = request;
  g_word.compare_exchange_strong(asked, with_state(request, kIdle));  // from here on it is too late
  return false;
}

}  // namespace

void native_samples_window_begins() {
  if (!activity_on(Activity::samples) || !activity_on(Activity::samples_native)) return;
  if (g_note[0] || is_shed(ShedKind::samples)) return;  // said once
  uint64_t pc = 0;
  ThreadCounts counts{};
  if (!stacks_are_on()) return give_up("call stacks cannot be recorded here");
  if (!frame_rules_need_no_lock()) return give_up("they need glibc 2.35 or newer");
  if (doing(session().pid, {}, counts, pc) == Doing::unknown) {
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
  if (activity_on(Activity::samples_native)) leave_signal();
}

bool read_thread_counts(uint32_t tid, ThreadCounts& counts) {
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/status", tid);
  if (!read_small_file(path, text, sizeof text)) return false;
  const char* const blocked = std::strstr(text, "SigBlk:");
  const char* const switches = std::strstr(text, "\nvoluntary_ctxt_switches:");
  if (!blocked || !switches) return false;
  counts.lets_signal_in = !(std::strtoull(blocked + 7, nullptr, 16) >> (kSignal - 1) & 1);
  const uint64_t waits = std::strtoull(switches + 25, nullptr, 10);
  if (counts.cpu_ns == 0 || counts.waits != waits) counts.cpu_ns = thread_cpu_ns(tid);
  counts.waits = waits;
  return true;
}

bool native_samples_on() { return g_on.load(std::memory_order_relaxed); }
const char* native_samples_note() { return g_note; }

ThreadLook look_at_thread(uint32_t tid) {
  const uint64_t cpu_ns = thread_cpu_ns(tid);
  return {cpu_ns, monotonic_ns()};
}

bool take_native_stack(uint32_t tid, const ThreadLook& since, ThreadCounts& counts,
                       NativeStack& out) {
  // First: between the look at what the thread does and the signal should be as little as can be.
  if (!is_ours()) {
    if (native_samples_on()) give_up("the program has taken SIGURG for itself");
    return false;
  }
  uint64_t pc = 0;
  switch (doing(tid, since, counts, pc)) {
    case Doing::unknown:
    case Doing::was_woken:
    case Doing::has_ended: return false;
    case Doing::waits:
      out.count = 1;
      out.frames[0] = pc;
      out.stack_pointers[0] = 0;
      return true;
    case Doing::runs: break;
  }
  if (!ask(tid)) return false;
  std::memcpy(&out, &g_answer, sizeof out);
  return out.count != 0;
}

namespace {
void forget_native_samples() {
  leave_signal();
  g_word = kIdle;
  g_note = "";
}
GPUPROF_FORGET_IN_CHILD(forget_native_samples);
}  // namespace

}  // namespace gpuprof
