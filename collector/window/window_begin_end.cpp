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

void forget_put_off() { g_put_off_first = {}; }
GPUPROF_FORGET_IN_CHILD(forget_put_off);

// Whether a step that begins now does so by the clock, on our own thread. With the session the
// first one begins on the program's.
bool begins_by_clock() {
  const Session& s = session();
  return s.opening_ns.load(std::memory_order_relaxed) == 0 && !s.loads_data &&
         s.tracker.source() == StepSource::time;
}

// Under step_lock. CUPTI was attached too late in the warm-up for the program to have waited for
// the GPU since: one step later it mostly has.
bool put_off_for_graphs(uint32_t number) {
  Session& s = session();
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
// is soon.
void put_off_window(uint32_t number) {
  Session& s = session();
  const bool writing = drain_is_asked_for(DrainCommand::close);
  const char* const what = cupti_is_attaching() ? "attaching CUPTI" : "preparing the buffers";
  if (!writing && s.tracker.source() != StepSource::profiler) {
    s.plan->postpone();
    set_phase_between_windows(SessionPhase::warmup);
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

// False: the drain thread is still at the window before, or attaching CUPTI.
bool prepare_window() {
  // Asked for at warm-up and normally over; with warmup=0 this thread waits for it. While the
  // window before is being closed CUPTI is still on, but would be switched off at the end of that.
  const bool closing = !drain_wait_idle(0);
  if (closing || !cupti_is_settled()) drain_request(DrainCommand::attach);
  return drain_wait_before_step();
}

void start_recording(uint32_t number, uint64_t first_step, uint64_t ticks) {
  Session& s = session();
  restart_stack_counts();
  open_window(number, first_step, ticks);
  keep_live_memory(number, now_ticks());
  processor_waits_begin();
  note_processor_wait(now_ticks(), false);
  operators_begin();
  modules_begin();
  drain_request(DrainCommand::watch);
  prepare_this_thread();
  if (!begins_by_clock()) {  // this thread is the program's, and waits until all is ready
    (void)drain_wait_for(DrainCommand::watch, kWaitForDumpNs);
    s.window.ready_ticks = now_ticks();
    ring()->header->window_ready_ticks.store(s.window.ready_ticks);
  }
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
  if (!prepare_window()) return put_off_window(number);
  if (put_off_for_graphs(number)) return;
  s.put_off = 0;
  s.tracker.hold_source(true, s.windows_done == 0);
  start_recording(number, first_step, ticks);
}

void open_window(uint32_t number, uint64_t first_step, uint64_t ticks) {
  Session& s = session();
  s.window =
      Window{number, first_step, ticks, 0, 0, first_step, false, "", false, false, true, ticks};
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
  s.window.opened_ticks = s.window.begin_ticks;
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
  s.tracker.hold_source(false);
  s.window.end_ticks = ticks;
  settle_steps(s.window);
  s.window.partial = partial;
  s.window.end_reason = reason;
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
  if (s.plan->armed() || window_is_open() || !(early || s.config.schedule.all)) return;
  if (!early) s.next_window = 1;
  if (!prepare_window()) {
    log_line(LogLevel::warn, "CUPTI was not ready within 3 s: the window begins without GPU times");
  }
  const uint32_t number = early ? kFirstEarlyWindow + s.early_windows++ : 0;
  start_recording(number, s.boundaries, g_host.process_start_ticks);
}

void begin_early_again() {
  Session& s = session();
  if (!s.wants_early || s.early_windows == 0 || s.phase.load() != SessionPhase::waiting) return;
  s.wants_early = seconds_between(s.start_ticks, now_ticks()) < kEarlySeconds;
  if (!s.wants_early || !prepare_window()) return;
  start_recording(kFirstEarlyWindow + s.early_windows++, s.boundaries, now_ticks());
}

void end_early(uint64_t ticks, bool another_is_near) {
  session().window.keeps_cupti = another_is_near;
  end_window(ticks, "early", true);
}

}  // namespace gpuprof
