// SPDX-License-Identifier: Apache-2.0
#include "collector/window/window_begin_end.h"

#include "collector/base/fork.h"
#include "collector/base/host.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_session.h"
#include "collector/python/modules.h"
#include "collector/record/ring.h"
#include "collector/samples/data_worker.h"
#include "collector/samples/processor_waits.h"
#include "collector/sources/memory_log.h"
#include "collector/sources/nvtx.h"
#include "collector/stacks/stacks.h"
#include "collector/torch/operators.h"
#include "collector/window/drain.h"
#include "collector/window/step_log.h"
#include "formats/core/early_window.h"

namespace gpuprof {
namespace {

constexpr uint64_t kWaitForDumpNs = 100'000'000;  // a slow file system holds no step up for longer
// For a wait that may never come: steps of the thread whose step was put off first, and of all.
constexpr uint32_t kMostPutOff = 3, kMostPutOffOfAll = 64;
constexpr double kEarlySeconds = 120;  // from the start; later no early window begins

// The thread that marked the first of the steps that a window was put off by, and how many of them.
// Under step_lock; of no meaning while Session::put_off is 0.
struct FirstPutOff {
  uint32_t thread, steps;
} g_put_off_first;

// A window that begins on the drain thread. The thread carries out what it asks for between two
// looks: while it holds step_lock, the program's marks wait. Under step_lock.
struct ByDrainThread {
  bool asked;  // for what the window needs
};
ByDrainThread g_early{};
struct WaitingWindow : ByDrainThread {
  bool waits;  // for a later look
  uint32_t number;
  uint64_t first_step;
} g_waiting{};

void forget_put_off() {
  g_put_off_first = {};
  g_early = {};
  g_waiting = {};
}
GPUPROF_FORGET_IN_CHILD(forget_put_off);

// A window is due and cannot be opened yet. What is being closed stays so for whoever reads the
// ring after SIGKILL.
void set_phase_until_open() {
  if (session().phase.load() == SessionPhase::closing) return;
  set_phase_between_windows(SessionPhase::warmup);
}

// Under step_lock. CUPTI was attached too late in the warm-up for the program to have waited for
// the GPU since: one step later it mostly has.
bool put_off_for_graphs(uint32_t number) {
  Session& s = session();
  if (s.config.schedule.all) return false;  // no step begins it, nor would one later
  if (!cupti_awaits_wait() || s.tracker.source() == StepSource::profiler) return false;
  if (s.put_off == 0) g_put_off_first = FirstPutOff{current_tid(), 0};
  if (g_put_off_first.steps >= kMostPutOff || s.put_off >= kMostPutOffOfAll) return false;
  ++s.put_off;
  g_put_off_first.steps += g_put_off_first.thread == current_tid();
  s.plan->postpone();
  set_phase_between_windows(SessionPhase::warmup);
  log_line(LogLevel::debug,
           "window %u takes a step later: the program has not waited for all its CUDA graphs since "
           "CUPTI was attached",
           number);
  return true;
}

// Under step_lock. The window cannot be opened yet: with the steps that come once it can, if that
// is soon. An early window holds none up for good: it is there for want of a better one.
void put_off_window(uint32_t number) {
  Session& s = session();
  const bool closing = drain_is_asked_for(DrainCommand::close);
  const bool early = is_early_window(s.window.number);
  const bool writing = closing && !early;
  const char* const what = cupti_is_attaching() ? "attaching CUPTI"
                           : closing            ? "writing what came before"
                                                : "preparing the buffers";
  if (!writing && s.tracker.source() != StepSource::profiler) {
    s.plan->postpone();
    set_phase_until_open();
    log_line(LogLevel::warn, "%s takes longer than %.0f s: window %u takes as many steps later",
             what, static_cast<double>(kLongestStepWaitNs) / 1e9, number);
    return;
  }
  if (writing) {
    log_line(LogLevel::warn,
             "window %u was left out: the dump of the one before is not written yet; set wait= in "
             "GPUPROF_SCHEDULE",
             number);
  } else {
    log_line(LogLevel::warn,
             "window %u was left out: %s takes longer than 3 s; call cudaProfilerStart later",
             number, what);
  }
  s.plan->cut();
  set_phase_between_windows(SessionPhase::waiting);
}

// While the window before is being closed, or CUPTI given back, it is still on, but off at the end
// of that.
void ask_for_cupti() {
  const bool goes_off = !drain_wait_idle(0) || drain_is_asked_for(DrainCommand::detach);
  if (goes_off || !cupti_is_settled()) drain_request(DrainCommand::attach);
}

// False: the drain thread is still at the window before, or attaching CUPTI.
bool prepare_window() {
  ask_for_cupti();  // at warm-up before, and normally over; with warmup=0 this thread waits for it
  return drain_wait_before_step();
}

// The same for a window that no step begins: it opens in any case.
void prepare_first_window() {
  ask_for_cupti();
  const FirstWait wait = drain_wait_before_first();
  if (wait == FirstWait::ready) return;
  cupti_window_opens_without();
  log_line(LogLevel::warn, "%s: the window begins without GPU times",
           wait == FirstWait::late ? "CUPTI was not ready within 3 s"
                                   : "CUPTI cannot be loaded while another library is");
}

// The same on the drain thread: true at the look after which all is there.
bool is_prepared(ByDrainThread& window) {
  if (!window.asked) ask_for_cupti();
  window.asked = !drain_wait_idle(0);
  return !window.asked;
}

void open_later(uint32_t number, uint64_t first_step) {
  g_waiting.waits = true;
  g_waiting.number = number;
  g_waiting.first_step = first_step;
  set_phase_until_open();
}

void start_recording(uint32_t number, uint64_t first_step, uint64_t ticks) {
  Session& s = session();
  restart_stack_counts();
  nvtx_window_begins();
  open_window(number, first_step, ticks);
  keep_live_memory(number, now_ticks());
  processor_waits_begin();
  note_processor_wait(now_ticks(), false);
  operators_begin();
  modules_begin();
  drain_request(DrainCommand::watch);
  prepare_this_thread();
  if (!is_drain_thread()) {  // this thread is the program's, and waits until all is ready
    (void)drain_wait_for(DrainCommand::watch, kWaitForDumpNs);
    s.window.ready_ticks = now_ticks();
    ring()->header->window_ready_ticks.store(s.window.ready_ticks);
  }
}

// Under step_lock.
void open_prepared(uint32_t number, uint64_t first_step, uint64_t ticks) {
  Session& s = session();
  if (put_off_for_graphs(number)) return;
  s.put_off = 0;
  if (!s.config.schedule.all) s.tracker.hold_source(true, s.windows_done == 0);
  start_recording(number, first_step, ticks);
}

}  // namespace

double seconds_between(uint64_t from, uint64_t to) {
  return static_cast<double>(to - from) / (session().clock.ticks_per_ns * 1e9);
}

void prepare_this_thread() {
  const bool enough = free_chunks() > ring()->header->chunk_count / 2;
  if (!t_state.next && enough) (void)reserve_record();
  if (session().tracker.source() == StepSource::nvtx) prepare_nvtx_thread();
}

void set_phase(SessionPhase phase) {
  session().phase.store(phase, std::memory_order_release);
  ring()->header->phase.store(static_cast<uint32_t>(phase), std::memory_order_release);
}

void set_phase_between_windows(SessionPhase phase) {
  set_phase(phase);
  apply_hook_flags();
}

bool is_free_window(const Window& window) {
  return is_early_window(window.number) || session().config.schedule.all;
}

bool early_is_open() { return window_is_open() && is_early_window(session().window.number); }

void begin_window(uint32_t number, uint64_t first_step, uint64_t ticks) {
  Session& s = session();
  s.next_window = number + 1;
  s.wants_early = false;
  g_waiting = {};
  if (is_drain_thread()) {
    if (!is_prepared(g_waiting)) return open_later(number, first_step);
  } else if (!prepare_window()) {
    return put_off_window(number);
  }
  if (s.finishing.load()) return;  // the program ends since
  open_prepared(number, first_step, ticks);
}

void open_waiting_window() {
  if (!g_waiting.waits || !is_prepared(g_waiting)) return;
  g_waiting.waits = false;
  open_prepared(g_waiting.number, g_waiting.first_step, now_ticks());
}

void postpone_waiting_window() {
  if (!g_waiting.waits || session().config.schedule.all) return;
  log_line(LogLevel::debug, "window %u takes as many steps later: what it needs is not there yet",
           g_waiting.number);
  g_waiting = {};
  session().plan->postpone();
}

void forget_waiting_window() {
  if (g_waiting.waits) session().plan->cut();
  g_waiting = {};
}

void open_window(uint32_t number, uint64_t first_step, uint64_t ticks) {
  Session& s = session();
  s.window =
      Window{number, first_step, ticks, 0, 0, first_step, false, "", false, false, true, ticks, ""};
  s.window.has_step = !is_free_window(s.window);
  RingHeader& header = *ring()->header;
  header.window.store(number);  // new buffers carry it
  s.phase.store(SessionPhase::active, std::memory_order_release);
  apply_hook_flags();
  const bool others_waited = s.opening_ns.load(std::memory_order_relaxed) != 0 &&
                             !s.opening_missed.load(std::memory_order_acquire);
  if (!others_waited && !s.loads_data) {
    // Calls of other threads are recorded from now on, and were not while this one waited for CUPTI
    // or was kept off its processor.
    s.window.begin_ticks = ticks_after_stores();
    if (s.window.has_step) {
      s.last_boundary_ticks = s.window.begin_ticks;
      move_last_step(s.window.begin_ticks);
    }
  }
  s.window.opened_ticks = now_ticks();
  // Together, for workers that follow: until here they see the window before as it ended.
  header.window_first_step.store(static_cast<uint32_t>(first_step));
  header.window_last_step.store(static_cast<uint32_t>(first_step));
  header.window_end_ticks.store(0);
  header.window_ready_ticks.store(0);
  header.window_begin_ticks.store(s.window.begin_ticks, std::memory_order_release);
  header.phase.store(static_cast<uint32_t>(SessionPhase::active), std::memory_order_release);
}

void end_window(uint64_t ticks, const char* reason, bool partial) {
  Session& s = session();
  modules_end();
  operators_end(ticks);
  nvtx_window_ends(ticks);
  s.tracker.hold_source(false);
  s.window.end_ticks = ticks;
  settle_steps(s.window);
  s.window.partial = partial;
  s.window.end_reason = reason;
  describe_step_source(s.window.source,
                       sizeof s.window.source);  // the drain thread writes it later
  if (!s.window.dropped && !is_free_window(s.window)) s.tracker.keep_count();
  RingHeader& header = *ring()->header;
  header.window_first_step.store(static_cast<uint32_t>(s.window.first_step));
  header.window_last_step.store(static_cast<uint32_t>(s.window.last_step));
  header.window_end_ticks.store(ticks, std::memory_order_release);
  set_phase(SessionPhase::closing);
  apply_hook_flags();
  drain_request(DrainCommand::close);
}

void begin_with_session() {
  Session& s = session();
  const bool early = s.wants_early && !s.config.schedule.all;
  if (s.plan->armed() || s.plan->is_off() || window_is_open() || !(early || s.config.schedule.all))
    return;
  if (!early) s.next_window = 1;
  prepare_first_window();
  const uint32_t number = early ? kFirstEarlyWindow + s.early_windows++ : 0;
  start_recording(number, s.boundaries, g_host.process_start_ticks);
}

void begin_early_again() {
  Session& s = session();
  if (!s.wants_early || s.early_windows == 0 || s.phase.load() != SessionPhase::waiting) return;
  s.wants_early = seconds_between(s.start_ticks, now_ticks()) < kEarlySeconds;
  if (!s.wants_early || !is_prepared(g_early)) return;
  start_recording(kFirstEarlyWindow + s.early_windows++, s.boundaries, now_ticks());
}

void leave_cupti_unused() {
  const Session& s = session();
  const bool between =
      s.phase.load() == SessionPhase::waiting && !drain_is_asked_for(DrainCommand::attach);
  const bool near = s.wants_early || s.plan->phase() == Phase::warmup || s.plan->postponed();
  if (between && !near && cupti_is_attached()) drain_request(DrainCommand::detach);
}

void end_early(uint64_t ticks, bool another_is_near) {
  session().window.keeps_cupti = another_is_near;
  end_window(ticks, "early", true);
}

}  // namespace gpuprof
