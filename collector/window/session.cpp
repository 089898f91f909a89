// SPDX-License-Identifier: Apache-2.0
#include "collector/record/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "collector/base/cancel_guard.h"
#include "collector/base/environment.h"
#include "collector/base/fork.h"
#include "collector/base/fork_waits.h"
#include "collector/base/host.h"
#include "collector/base/idle.h"
#include "collector/base/libc.h"
#include "collector/base/log.h"
#include "collector/base/redact.h"
#include "collector/cupti/cupti_session.h"
#include "collector/python/bridge.h"
#include "collector/record/collector.h"
#include "collector/record/cuda_start.h"
#include "collector/record/ring.h"
#include "collector/samples/data_worker.h"
#include "collector/stacks/stacks.h"
#include "collector/steps/kernel_steps.h"
#include "collector/steps/period_steps.h"
#include "collector/window/drain.h"
#include "collector/window/identity.h"
#include "formats/core/setting_values.h"
#include "formats/core/text.h"

extern char** environ;

namespace gpuprof {

namespace {

constinit Session g_session;

constexpr uint64_t kSecond = 1000000000;

// How long `auto` waits for PyTorch's optimizers before it takes less (docs/STEPS.md), and
// how short marks that are no loop's may last.
constexpr double kOptimizersSeconds = 10, kBurstSeconds = 0.02;
constexpr double kStartUpSeconds = 120;  // in which more CUDA graphs are start-up

void set_all_flags(uint8_t flags) {
  for (auto& flag : g_hook_flags) flag.store(flags, std::memory_order_relaxed);
}

void turn_off() {
  g_session.state.store(SessionState::off, std::memory_order_release);
  set_all_flags(kHookSettled);
}

void warn_unknown(const char* name, const char* nearest, void*) {
  log_line(LogLevel::warn, "%s is no setting of gpuprof%s%s%s; `gpuprof config` lists them", name,
           nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
}

// Whether this is the first rank of its host that GPUPROF_RANKS selects. The ranks of a host are
// taken to follow each other; where they do not, more than one may inform, and at least one does.
bool informs_of_host() {
  const Session& s = g_session;
  const int local = s.place.local_rank, rank = s.place.rank;
  if (local <= 0 || rank < local) return local <= 0;
  for (int before = rank - local; before < rank; ++before) {
    Reason reason;
    bool selected = false;
    if (read_ranks(s.settings->text(Setting::ranks), before, selected, reason) && selected) {
      return false;
    }
  }
  return true;
}

// Without a rank a process is rank 0, which its user may not know.
void say_left_out() {
  const Session& s = g_session;
  if (s.place.rank >= 0) return;
  log_line(LogLevel::warn,
           "GPUPROF_RANKS=%s leaves this program out: no variable of a launcher tells its rank, so "
           "that it is rank 0",
           s.settings->text(Setting::ranks));
}

bool configure() {
  Session& s = g_session;
  s.pid = current_pid();
  keep_environment();
  s.place = find_job_place(kept_environment());
  log_set(LogLevel::info, s.place.rank, s.place.local_rank <= 0);
  s.settings = new (s.settings_memory) Settings;
  SettingError error;
  if (!s.settings->load_all(kept_environment(), error, s.loads_data ? nullptr : warn_unknown,
                            nullptr) ||
      !s.settings->parse(std::max(s.place.rank, 0), s.config, error)) {
    log_line(LogLevel::error, "%s; this program runs unprofiled", error.text);
    return false;
  }
  log_set(s.config.log, s.place.rank, informs_of_host());
  redact(s.config.redact);
  if (s.config.mode == Mode::off) return false;
  if (!s.config.rank_selected) {
    say_left_out();
    return false;
  }
  warn_of_calls_without_stacks();
  const bool armed = s.config.mode == Mode::armed;
  s.tracker.start(s.config.step, g_host.process_start_ticks, armed);
  if (s.config.step.source == StepSource::kernel) compile_kernel_pattern(s.config.step.name);
  if (s.config.step.source == StepSource::period) period_begin();
  find_step_calls();
  s.plan = new (s.plan_memory) WindowPlan(s.config.schedule, armed);
  s.wants_early = !armed && is_default_schedule(s.config.schedule) &&
                  s.config.step.source != StepSource::profiler;
  return true;
}

bool start() {
  Session& s = g_session;
  const uint64_t before = now_ticks();
  const uint64_t before_ns = monotonic_ns();
  const double ticks_per_ns = g_clock_is_counter ? counter_ticks_per_ns() : 1;  // 1: after fork
  s.clock = choose_clock();
  if (s.clock.source == ClockSource::monotonic) {
    // The constructor's time was taken in ticks of a clock that will not be used.
    const double ago = static_cast<double>(before - g_host.process_start_ticks) / ticks_per_ns;
    g_host.process_start_ticks = before_ns - static_cast<uint64_t>(ago);
    s.tracker.start(s.config.step, g_host.process_start_ticks, s.config.mode == Mode::armed);
  }
  if (s.loads_data) {
    if (static_cast<uint32_t>(s.clock.source) != parent_clock_source()) return false;
    s.place.rank = parent_rank();
    limit_to_data_worker(s.config);
    log_set(s.config.log, s.place.rank, informs_of_host());
  }
  s.start_ticks = now_ticks();
  const double second = s.clock.ticks_per_ns * 1e9;
  const ScheduleSpec& spec = s.config.schedule;
  s.tracker.set_patience({static_cast<uint64_t>(kOptimizersSeconds * second),
                          uint64_t{spec.skip_first} + spec.wait + spec.warmup + spec.active,
                          static_cast<uint64_t>(kBurstSeconds * second),
                          static_cast<uint64_t>(kStartUpSeconds * second)});
  python_watch();  // the ring has room for the stacks of an interpreter
  if (!make_output_names() || !start_drain_thread()) return false;
  ::atexit([] { finish_session("exit"); });
  // A window that begins at once needs CUPTI, and the drain thread could not attach it just now.
  uint64_t window = 0;
  const bool at_once = !s.plan->armed() && !s.plan->is_off() &&
                       (s.config.schedule.all || s.wants_early ||
                        s.plan->schedule().phase_of(0, &window) == Phase::active);
  if (at_once && s.driver_thread.load(std::memory_order_relaxed) == current_tid()) {
    // CUPTI's own thread is not to be the one that takes the program's signals.
    sigset_t all, before;
    ::sigfillset(&all);
    // Linux changes the calling thread's. pthread_sigmask came into libc.so with glibc 2.32.
    ::sigprocmask(SIG_SETMASK, &all, &before);  // NOLINT(concurrency-mt-unsafe)
    cupti_attach();
    ::sigprocmask(SIG_SETMASK, &before, nullptr);  // NOLINT(concurrency-mt-unsafe)
  }
  python_session_begins();
  steps_begin();
  return true;
}

// start() itself gives up waiting for its thread after 5 s, and for CUPTI after 3 s.
constexpr uint64_t kLongestStart = 10 * kSecond;

// CUPTI may wait for what another thread holds, which waits here: it must go on before the window
// is given up.
constexpr uint64_t kLongestOpening = 2 * kSecond;

// A call that goes on without its record is one thing, a program that hangs another: the thread
// that starts the session may wait for what this one holds.
void give_up_waiting(const char* what, uint64_t longest) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  log_line(LogLevel::warn,
           "another thread has been %s for %llu s; calls made meanwhile are not recorded", what,
           static_cast<unsigned long long>(longest / kSecond));
}

// Whether a thread that has waited since then for another to start the session goes on.
bool has_waited_enough(uint64_t since) {
  // A start that never ends, as by a signal handler that jumps out of it, is waited for once.
  if (g_session.opening_missed.load(std::memory_order_acquire)) return true;
  const uint64_t now = monotonic_ns();
  const uint64_t opening = g_session.opening_ns.load(std::memory_order_acquire);
  if (opening != 0 && now > opening + kLongestOpening) {
    g_session.opening_missed.store(true, std::memory_order_release);
    give_up_waiting("opening the first window", kLongestOpening);
    return true;
  }
  if (now < since + kLongestStart) return false;
  g_session.opening_missed.store(true, std::memory_order_release);
  give_up_waiting("starting the session", kLongestStart);
  return true;
}

// Only one thread does the work; the others wait for its outcome, for as long as it may take, or go
// on as if there were none.
template <typename Work>
bool once(SessionState from, SessionState busy, SessionState to, Work work, bool waits = true) {
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  SessionState seen = from;
  if (g_session.state.compare_exchange_strong(seen, busy)) {
    const BlockedScope blocked;
    if (!work()) {
      turn_off();
      return false;
    }
    g_session.state.store(to, std::memory_order_release);
    return true;
  }
  const uint64_t begun = monotonic_ns();
  while (waits && seen == busy && !has_waited_enough(begun)) {
    ::usleep(100);
    seen = g_session.state.load(std::memory_order_acquire);
  }
  return seen != busy && seen != SessionState::off;
}

// A thread that started the session here would need CUPTI, which waits for the driver, which would
// wait in start_in_driver() for this thread.
void let_driver_thread_start() {
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  not_in_driver();
  const uint64_t begun = monotonic_ns();
  for (;;) {
    uint32_t thread = g_session.driver_thread.load(std::memory_order_acquire);
    const bool starting = g_session.state.load(std::memory_order_acquire) == SessionState::starting;
    if (thread == 0 || starting) return;
    if (monotonic_ns() - begun > kSecond) {  // something else has loaded this library, or it failed
      g_session.driver_thread.compare_exchange_strong(thread, 0);
      log_line(LogLevel::info, "CUDA's driver has not started this library within 1 s");
      return;
    }
    ::usleep(100);
  }
}

// All but what is of the process and not of its session.
void forget_session(Session& session) {
  const bool tells_optimizers = session.tells_optimizers;  // its observer is in the interpreter
  const bool names_workers = session.names_workers;        // the child has the same PyTorch
  new (&session) Session;
  session.tells_optimizers = tells_optimizers;
  session.names_workers = names_workers;
}

}  // namespace

constinit std::atomic<uint8_t> g_hook_flags[kMaxApis] = {};

Session& session() { return g_session; }

StepLock::StepLock() {
  constexpr uint64_t kLongest = 10 * kSecond;  // a mark waits 6 s at most
  Session& s = g_session;
  const bool was_stuck = s.mark_is_stuck.load(std::memory_order_relaxed);
  has_ = was_stuck ? s.step_lock.try_lock() : s.step_lock.lock_within(kLongest);
  if (has_ == was_stuck) s.mark_is_stuck.store(!has_, std::memory_order_relaxed);
  if (has_ || s.stuck_mark_is_said.exchange(true)) return;
  log_line(LogLevel::warn,
           "a step's mark has not ended for %llu s, perhaps since a signal handler has jumped out "
           "of it: steps that come meanwhile are left out",
           static_cast<unsigned long long>(kLongest / kSecond));
}

StepLock::~StepLock() {
  if (has_) g_session.step_lock.unlock();
}

const ApiRow* api_rows() { return g_host.rows; }
size_t api_count() { return g_host.row_count; }

GPUPROF_IDLE_CODE void collector_init() {
  if (!has_libc()) return collector_stays_off();
  const ErrnoGuard keep_errno;
  g_host.process_start_ticks = now_ticks();
  g_host.stderr_was_closed = ::fcntl(STDERR_FILENO, F_GETFD) < 0;
  // A relative GPUPROF_OUTPUT means where the program was started, wherever it goes later.
  if (!::getcwd(g_host.start_directory, sizeof g_host.start_directory)) {
    g_host.start_directory[0] = '\0';
  }
  let_forks_wait();
  at_fork_in_child(forget_session_in_child);
}

void collector_stays_off() {
  g_host.own_path = nullptr;
  turn_off();
}

bool ensure_configured() {
  const SessionState seen = g_session.state.load(std::memory_order_acquire);
  if (seen == SessionState::off || seen == SessionState::finished) return false;
  if (seen >= SessionState::configured) return true;
  return once(SessionState::asleep, SessionState::configuring, SessionState::configured, configure);
}

bool ensure_started() {
  if (!ensure_configured()) return false;
  const SessionState seen = g_session.state.load(std::memory_order_acquire);
  if (seen == SessionState::running) return true;
  if (seen != SessionState::configured && seen != SessionState::starting) return false;
  let_driver_thread_start();
  return once(SessionState::configured, SessionState::starting, SessionState::running, start);
}

uint8_t wake_session(ApiId api) {
  if (t_state.blocked) return kHookSettled;
  // NCCL's calls that have a row make communicators, or are about to: they call the runtime.
  const Library library = api_rows()[api].library;
  if (library == Library::cudart || library == Library::nccl) note_runtime_call();
  ensure_started();
  return g_hook_flags[api].load(std::memory_order_relaxed);
}

void expect_start_in_driver() {
  g_session.driver_thread.store(current_tid(), std::memory_order_release);
}

void not_in_driver() {
  uint32_t thread = current_tid();
  g_session.driver_thread.compare_exchange_strong(thread, 0);
}

void start_in_driver() {
  expect_start_in_driver();
  // Our own use of CUPTI may have made the driver start; and a thread that is at it already may
  // wait for the driver.
  if (!t_state.blocked && ensure_configured()) {
    once(SessionState::configured, SessionState::starting, SessionState::running, start, false);
  }
  g_session.driver_thread.store(0, std::memory_order_release);
}

GPUPROF_IDLE_CODE bool session_is_live() {
  return g_session.state.load(std::memory_order_acquire) == SessionState::running &&
         g_session.pid == current_pid();
}

bool wants_injection() {
  for (char** entry = environ; entry && *entry; ++entry) {
    if (std::strcmp(*entry, "GPUPROF_MODE=off") == 0) return false;
  }
  return g_host.own_path && g_host.own_path()[0] != '\0';
}

GPUPROF_IDLE_CODE bool save_before_exec() {
  if (!session_is_live()) return false;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  const BlockedScope blocked;
  if (g_session.finishing.load()) {  // another thread ends the program
    (void)drain_wait_exit();
    return false;
  }
  g_session.execs.fetch_add(1);
  drain_request(DrainCommand::save);
  // The mapping goes on without its name: only if exec fails and the process is then killed is
  // anything lost. What is not saved in time is read from it.
  if (drain_wait_idle(10 * kSecond)) remove_ring_name();
  return true;
}

GPUPROF_IDLE_CODE void go_on_after_failed_exec() {
  if (g_session.execs.fetch_sub(1) > 1) return;  // another thread's call may not fail
  if (!session_is_live() || g_session.finishing.load()) return;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  const BlockedScope blocked;
  drain_request(DrainCommand::unsave);
  drain_wait_idle(10 * kSecond);
}

GPUPROF_IDLE_CODE void finish_session(const char* reason) {
  Session& s = g_session;
  if (!session_is_live()) return;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  const BlockedScope blocked;
  if (s.finishing.exchange(true)) {  // another thread is at it, and must not be cut short
    (void)drain_wait_exit();
    return;
  }
  cut_window(reason);
  set_all_flags(kHookSettled);
  const bool ended = drain_wait_exit();
  s.state.store(SessionState::finished, std::memory_order_release);
  if (ended) return;
  log_line(LogLevel::warn, "the dump could not be finished in time; what was recorded is in %s*",
           s.stem);
}

void forget_session_in_child() {
  data_worker_forked();
  g_session.driver_thread = 0;
  const SessionState state = g_session.state.load(std::memory_order_relaxed);
  if (state == SessionState::asleep) return;
  for (const ForgetInChild* forget = g_forget_begin; forget != g_forget_end; ++forget) (*forget)();
  t_state = ThreadState{};
  forget_session(g_session);
  g_host.process_start_ticks = now_ticks();
  // A user's `off`, or a bad setting that was reported once, holds for the child too.
  if (state == SessionState::off) return turn_off();
  set_all_flags(0);
}

}  // namespace gpuprof
