// SPDX-License-Identifier: Apache-2.0
// Boundaries to phases: the step log, the schedule, and what asks for a window.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "collector/base/cancel_guard.h"
#include "collector/base/log.h"
#include "collector/record/collector.h"
#include "collector/record/names.h"
#include "collector/record/own_time.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/samples/data_worker.h"
#include "collector/samples/processor_waits.h"
#include "collector/sources/memory_log.h"
#include "collector/sources/replayed_graphs.h"
#include "collector/steps/marking_device.h"
#include "collector/steps/period_steps.h"
#include "collector/steps/step_calls.h"
#include "collector/window/drain.h"
#include "collector/window/step_log.h"
#include "collector/window/step_source.h"
#include "collector/window/step_wait.h"
#include "collector/window/window_begin_end.h"
#include "formats/core/early_window.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr double kAutoFallbackMs = 1000;
constexpr uint64_t kEarlyBoundaries = 16;  // DistributedDataParallel is warmed up for 11 steps
constexpr size_t kChosenAtOnce = 3;        // boundaries of a source that has not had to wait
constexpr uint32_t kMostBrackets = 16;     // by the default schedule
constexpr double kSilentSeconds = 5, kSilentSteps = 20;  // without a step, as long as the last one

void log_boundary(uint64_t ticks) {
  Session& s = session();
  ticks = std::max(ticks, s.last_boundary_ticks);  // of another thread, which came first
  if (!log_step(ticks)) return;                    // as if nobody had marked it
  s.last_step_ticks = ticks - s.last_boundary_ticks;
  ++s.boundaries;
  s.last_boundary_ticks = ticks;
}

void apply(const Transition& change, uint64_t boundary, uint64_t ticks) {
  const bool near = change.window_begins || change.after == Phase::warmup;
  const bool ends_early = near && early_is_open();
  if (near) session().wants_early = false;
  if (ends_early) end_early(ticks, true);
  if (change.window_ends) end_window(ticks, change.interrupted ? "trigger" : "schedule", false);
  for (uint32_t i = 0; i < change.left_out; ++i) {
    log_line(LogLevel::warn, "window %u was left out: window %u takes its place",
             change.left_out_window[i], change.window);
  }
  if (change.window_begins) {
    begin_window(change.window, boundary, ticks);
  } else if (change.after == Phase::warmup && change.before != Phase::warmup) {
    if (!change.window_ends && !ends_early) set_phase(SessionPhase::warmup);
    apply_hook_flags();
    drain_request(DrainCommand::attach);
  } else if (change.before == Phase::warmup && change.after != Phase::warmup) {
    set_phase_between_windows(SessionPhase::waiting);
    drain_request(DrainCommand::detach);
  }
}

void say_moved_request() {
  const Session& s = session();
  log_line(LogLevel::info, "gpuprof trigger's request is for steps %" PRIu64 "-%" PRIu64 " now",
           s.plan->trigger_first(), s.plan->trigger_first() + s.plan->trigger_steps() - 1);
}

// What was counted were no steps. A window of them that is open leaves no dump. `newest`: the
// boundary of the new count that is being taken.
bool forget_steps(uint64_t ticks, uint64_t newest) {
  Session& s = session();
  if (!s.config.schedule.all) forget_waiting_window();
  const SessionPhase phase = s.phase.load();
  if (phase == SessionPhase::active && !is_free_window(s.window)) {
    s.window.dropped = true;
    end_window(ticks, "no steps", true);
    s.plan->cut();
  } else if (phase == SessionPhase::warmup) {
    set_phase_between_windows(SessionPhase::waiting);
    drain_request(DrainCommand::detach);
  }
  if (!drain_wait_before_step() || !restart_step_log()) {
    if (s.plan->ask_again(s.boundaries)) say_moved_request();
    return false;
  }
  s.window.has_step = s.window.has_step && !is_free_window(s.window);
  const bool moved = s.plan->restart(s.boundaries ? s.boundaries - 1 : 0, newest);
  if (s.plan->ask_again(newest) || moved) say_moved_request();
  s.boundaries = s.last_boundary_ticks = s.silent_step_ticks = 0;
  s.next_window = 0;
  return true;
}

// The schedule was over, by something else, when the program's own steps came: as many of those,
// too, unless somebody has asked for some. After start-up they come once it has lasted: each time
// that it goes on they are asked for anew.
void record_after_other(uint64_t index, bool after_start_up) {
  Session& s = session();
  const ScheduleSpec& spec = s.config.schedule;
  if (s.plan->schedule().phase() != Phase::done) return;
  if (s.plan->waits_for_trigger() && !s.awaits_own_request) return;
  const uint64_t least = after_start_up ? StartUp::kFewMarks : 0;
  const uint64_t skipped = std::max<uint64_t>(spec.skip_first, least);
  s.awaits_own_request = s.plan->trigger(index + 1 + skipped + spec.warmup, spec.active, index);
}

// The program still makes CUDA graphs: what it did by now was start-up.
void begin_anew(const StepTracker::Result& result) {
  Session& s = session();
  static std::atomic<bool> said{false};
  const uint64_t counted = s.boundaries;
  if (result.restarts) {
    const SessionPhase phase = s.phase.load();
    const bool open = phase == SessionPhase::active && !is_free_window(s.window);
    if (open || phase == SessionPhase::warmup) s.tracker.lost_window();
    (void)forget_steps(result.ticks[0], 0);
    s.start_up_boundaries += counted;
    s.wants_early =
        s.early_windows != 0 && !s.plan->is_off();  // what comes before the next warm-up
  }
  s.records_again = s.records_again || !result.restarts;
  s.source_unsaid = false;
  copy_text(s.source_text, s.start_up_source, sizeof s.start_up_source);
  publish_source();
  s.looking_ticks = result.ticks[0];
  apply_hook_flags();
  if (said.exchange(true)) return;
  log_line(LogLevel::info,
           "steps: %s was start-up (%" PRIu64
           " boundaries): the program still makes CUDA graphs; looking for its steps anew",
           s.start_up_source, counted);
}

void take_boundaries(const StepTracker::Result& result) {
  Session& s = session();
  if (result.starts_up) return begin_anew(result);
  if (result.count == 0) return;
  // What comes back after a silence has had its window, or will have it.
  const bool follows_other = result.chosen_now && s.source != StepSource::automatic &&
                             !result.comes_back && s.tracker.source() != StepSource::profiler;
  const uint64_t counted = s.boundaries;
  const bool restarted =
      result.restarts && forget_steps(result.ticks[result.count - 1], result.count - 1);
  const size_t first = result.restarts && !restarted ? result.count - 1 : 0;
  const uint64_t logged = s.boundaries;
  for (size_t i = first; i < result.count; ++i) log_boundary(result.ticks[i]);
  if (s.boundaries == logged && !result.chosen_now) return;
  // The silence was no step.
  if (result.chosen_now && s.silent_step_ticks) s.last_step_ticks = s.silent_step_ticks;
  const uint64_t newest = s.boundaries - 1;
  const uint64_t ticks = std::max(result.ticks[result.count - 1], s.last_boundary_ticks);
  // For whoever reads the ring after SIGKILL.
  if (window_is_open()) {
    Window& window = s.window;
    if (!window.has_step) settle_steps(window);
    ring()->header->window_first_step.store(static_cast<uint32_t>(window.first_step));
    ring()->header->window_last_step.store(static_cast<uint32_t>(newest - 1));
  }
  // The dump of a window that begins or ends here names the source.
  if (result.chosen_now) publish_source();
  if (result.chosen_now && result.count > kChosenAtOnce) s.plan->begin_after(newest);
  postpone_waiting_window();
  if (s.plan->postponed() && drain_wait_idle(0)) s.plan->resume(newest);
  const Transition change = s.plan->advance(newest);
  if (window_is_open()) note_processor_wait(result.ticks[result.count - 1], !change.window_ends);
  apply(change, newest, ticks);
  const bool again = result.chosen_now && s.records_again;
  if (follows_other || again) record_after_other(newest, again);
  if (result.chosen_now) s.records_again = false;
  if (restarted) {
    log_line(LogLevel::info, "%" PRIu64 " boundaries are forgotten, which were none of steps",
             counted);
  }
  static std::atomic<bool> said_leader{false};
  const bool leads = s.tracker.leading_device() != kUnknownDevice;
  if (leads && !said_leader.exchange(true) && !result.chosen_now) say_source();
  say_source_once(result.chosen_now, newest);
  if (result.chosen_now) apply_hook_flags();
}

// Under step_lock, on the drain thread.
ControlResult ask_for_window(const ControlRequest& request) {
  Session& s = session();
  if (s.tracker.source() == StepSource::profiler) return ControlResult::no_steps;
  if (s.plan->is_off()) return ControlResult::off;
  if (s.config.schedule.all) return ControlResult::whole;
  const uint64_t index = s.boundaries ? s.boundaries - 1 : 0;
  const bool replaces = s.plan->waits_for_trigger();
  if (s.plan->trigger(request.step, request.steps, index)) {
    s.awaits_own_request = false;
    log_line(LogLevel::info, "gpuprof trigger asks for steps %" PRIu64 "-%" PRIu64, request.step,
             request.step + request.steps - 1);
    return replaces ? ControlResult::replaced : ControlResult::accepted;
  }
  if (request.step > index) return ControlResult::busy;
  log_line(LogLevel::warn,
           "gpuprof trigger asks for step %" PRIu64 ", but step %" PRIu64
           " has begun: that request is left out",
           request.step, index);
  return ControlResult::late;
}

// Under step_lock, on the drain thread.
void stop_recording() {
  const SessionPhase phase = session().phase.load();
  session().wants_early = false;
  forget_waiting_window();
  if (phase == SessionPhase::active) {
    end_window(now_ticks(), "off", true);
  } else if (phase == SessionPhase::warmup) {
    set_phase_between_windows(SessionPhase::waiting);
    drain_request(DrainCommand::detach);
  }
}

// Whether marks are steps. A DataLoader's worker has none.
bool ready() {
  const Session& s = session();
  return s.state.load(std::memory_order_acquire) == SessionState::running && !s.loads_data &&
         !s.finishing.load(std::memory_order_relaxed);
}

// The begin of a window of the whole program moves, where its oldest events have to go.
bool is_another(const ParentWindow& parent) {
  const Window& own = session().window;
  const bool moves = session().config.schedule.all && own.begin_ticks != 0;
  return moves ? parent.number != own.number : parent.begin_ticks != own.begin_ticks;
}

// On the drain thread of a DataLoader's worker, for whose steps no thread of the program waits.
bool has_room_to_follow() {
  static std::atomic<bool> said{false};
  char why[1700] = "";
  if (make_ring_whole(why, sizeof why)) return true;
  if (!said.exchange(true)) log_line(LogLevel::warn, "%s; this worker is not recorded", why);
  return false;
}

// Under step_lock, in a DataLoader's worker whose window is open.
void follow_open_window(const ParentWindow& parent, uint64_t ticks) {
  Session& s = session();
  if (is_another(parent)) {
    end_window(ticks, "parent", true);  // the next one has begun before its end was seen
    return;
  }
  s.window.last_step = parent.last_step;
  ring()->header->window_last_step.store(static_cast<uint32_t>(parent.last_step));
  if (parent.end_ticks) end_window(parent.end_ticks, "parent", false);
}

}  // namespace

void refresh_hook_flags() {
  const CancelGuard goes_on;
  const BlockedScope blocked;
  const StepLock guard;
  if (guard && ready()) apply_hook_flags();
}

void steps_begin() {
  const LockGuard guard(session().step_lock);
  publish_source();
  set_phase(SessionPhase::waiting);
  // Hooks are not settled before: a window may begin here, and other threads' first calls belong to
  // it.
  session().opening_ns.store(monotonic_ns(), std::memory_order_release);
  if (!session().loads_data) {
    take_boundaries(session().tracker.first_boundary());
    begin_with_session();
  }
  apply_hook_flags();
  session().opening_ns.store(0, std::memory_order_release);
}

// The mark that starts the session is read before the clock is chosen, by the counter, which the
// kernel may not trust.
static uint64_t on_session_clock(uint64_t ticks) {
  const Session& s = session();
  if (s.clock.source != ClockSource::monotonic) return ticks;
  return ticks < s.start_ticks || ticks > now_ticks() ? s.start_ticks : ticks;
}

void step_mark(const StepMark& mark) {
  if (t_state.blocked || !ensure_started() || !ready()) return;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  uint64_t begin = now_ticks();
  {
    const BlockedScope blocked;
    StepMark placed = mark;
    placed.ticks = on_session_clock(mark.ticks);
    placed.thread = current_tid();
    placed.device = marking_device();
    placed.graphs = most_live_graphs();
    const StepLock guard;
    if (!guard || !ready()) return;
    if (session().tells_optimizers.load(std::memory_order_relaxed))
      session().tracker.expect_optimizers();
    take_boundaries(session().tracker.mark(placed));
    if (session().phase.load(std::memory_order_relaxed) == SessionPhase::warmup) {
      prepare_this_thread();
    }
    begin = std::max(begin, session().window.begin_ticks);  // of one that it has opened
  }
  note_own_time(OwnTime::step, begin, now_ticks());
}

// A cudaProfilerStart in a window that the schedule has opened. Under step_lock.
static void ignore_profiler() {
  static std::atomic<bool> said{false};
  const Session& s = session();
  if (!s.tracker.wants(StepSource::profiler) || said.exchange(true)) return;
  if (s.config.schedule.all) {
    log_line(LogLevel::warn,
             "cudaProfilerStart opens no window: GPUPROF_SCHEDULE=all records the whole program; "
             "without it these calls do, with GPUPROF_STEP=profiler no others");
    return;
  }
  log_line(LogLevel::warn,
           "cudaProfilerStart is ignored: window %u (%s) is open; with GPUPROF_STEP=profiler it "
           "alone opens windows",
           s.window.number, s.source_text);
}

// As many as the schedule's `repeat` says; by the default one, which does not have brackets in
// mind, so many that a program with thousands of them does not fill the disk.
static bool may_open_bracket() {
  static std::atomic<bool> said{false};
  const Session& s = session();
  const ScheduleSpec& spec = s.config.schedule;
  const bool by_default = !spec.has_repeat && is_default_schedule(spec);
  const uint32_t most = by_default ? kMostBrackets : spec.repeat;
  if (most == 0 || s.brackets < most) return true;
  if (!said.exchange(true)) {
    log_line(LogLevel::info,
             "cudaProfilerStart opens no more windows: %u are recorded; for more of them set "
             "repeat=N in GPUPROF_SCHEDULE, 0: all",
             s.brackets);
  }
  return false;
}

void step_profiler(bool start, uint64_t ticks) {
  Session& s = session();
  if (t_state.blocked || !ensure_started() || !ready()) return;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  const BlockedScope blocked;
  const StepLock guard;
  if (!guard || !ready() || start == s.profiler_on) return;
  ticks = on_session_clock(ticks);
  const bool ours = s.tracker.source() != StepSource::profiler;
  if (s.config.schedule.all || (window_is_open() && ours && !early_is_open())) {
    return ignore_profiler();
  }
  const StepTracker::Result result = s.tracker.mark({StepSource::profiler, ticks});
  if (result.count == 0) return;
  s.profiler_on = start;
  s.wants_early = false;
  forget_waiting_window();
  if (early_is_open()) end_early(ticks, start);
  log_boundary(ticks);
  if (result.chosen_now) publish_source();
  s.bracket_came = s.bracket_came || start;
  if (start && s.plan->is_off()) {
    // Recording is off: no window, but the steps go on.
  } else if (start && may_open_bracket()) {
    begin_window(s.next_window, s.boundaries - 1, ticks);
    s.brackets += window_is_open();  // or it was left out
  } else if (window_is_open()) {
    end_window(ticks, "cudaProfilerStop", false);
  }
  if (result.chosen_now) apply_hook_flags();
}

// Whether steps are known is said once each time.
static void look_for_period() {
  FoundSteps found{};
  if (!period_look(monotonic_ns(), found)) return;
  log_line(LogLevel::info, "steps: %.0f launches each, found from their order, confidence %.2f",
           found.launches, found.confidence);
}

// Early, where the optimizer of a step that becomes one CUDA graph is seen; later, what goes on
// without steps may be a validation or a break.
static void look_for_other_steps(uint64_t ticks) {
  Session& s = session();
  const bool records =
      s.phase.load(std::memory_order_relaxed) == SessionPhase::active && !early_is_open();
  const bool early = s.next_window == 0 && s.boundaries <= kEarlyBoundaries && !records;
  if (!early || s.plan->armed() || s.plan->is_off() || ticks < s.last_boundary_ticks) return;
  const double silence = seconds_between(s.last_boundary_ticks, ticks);
  const double patience = kSilentSteps * seconds_between(0, s.last_step_ticks);
  if (silence < kSilentSeconds || silence < patience) return;
  char silent[sizeof s.source_text];
  s.tracker.describe(silent, sizeof silent);
  if (!s.tracker.look_again()) return;
  publish_source();
  s.silent_step_ticks = s.last_step_ticks;
  s.looking_ticks = ticks;
  s.start_up_source[0] = '\0';
  log_line(LogLevel::info, "steps: none by %s for %.0f s, looking for others", silent, silence);
  apply_hook_flags();
}

// Opening a window may take longer than a step: no step has nearly no time.
static void keep_due_ahead(double period) {
  Session& s = session();
  while (s.next_due_ticks < s.last_boundary_ticks + static_cast<uint64_t>(period / 2)) {
    s.next_due_ticks += static_cast<uint64_t>(period);
  }
}

// Under step_lock, on the drain thread. The grid goes on from when a boundary was due, so that a
// late tick does not shift all that follow. The boundary itself is now: what is past was not
// recorded.
static void mark_by_clock(uint64_t ticks) {
  Session& s = session();
  const double period = s.tracker.spec().milliseconds * 1e6 * s.clock.ticks_per_ns;
  if (s.next_due_ticks == 0) {
    s.next_due_ticks = s.last_boundary_ticks + static_cast<uint64_t>(period);
  }
  keep_due_ahead(period);  // a look before this one may have opened a window
  if (ticks < s.next_due_ticks) return;
  while (s.next_due_ticks <= ticks) s.next_due_ticks += static_cast<uint64_t>(period);
  take_boundaries(s.tracker.mark({StepSource::time, ticks}));
  keep_due_ahead(period);
}

void steps_tick(uint64_t ticks) {
  Session& s = session();
  if (ready() && s.config.step.source == StepSource::period) look_for_period();
  if (!ready() || !s.step_lock.try_lock()) return;
  begin_early_again();
  open_waiting_window();
  leave_cupti_unused();
  const StepSource source = s.tracker.source();
  if (source == StepSource::time) {
    mark_by_clock(ticks);
  } else if (source != StepSource::automatic) {
    stop_watching();
    look_for_other_steps(ticks);
  } else if (!s.tracker.waits_for_source() && waited_in_vain(ticks)) {
    take_boundaries(s.tracker.fall_back_to_time(kAutoFallbackMs, ticks));
  }
  s.step_lock.unlock();
}

void settle_steps(Window& window) {
  const Session& s = session();
  if (s.loads_data) return;
  window.last_step = s.boundaries - 2;  // the one before the newest boundary
  if (!is_free_window(window)) return;
  if (!window.has_step) window.first_step = first_boundary_from(window.begin_ticks);
  window.has_step = window.first_step < s.boundaries;
  // One step alone may be what follows the last work: then all that was recorded says more.
  const bool several = s.boundaries >= 3 && window.first_step <= s.boundaries - 3;
  if (!several) window.last_step = window.first_step - 1;
}

bool move_window_begin(uint64_t ticks) {
  Session& s = session();
  if (!s.step_lock.try_lock()) return false;
  const bool open = s.phase.load() == SessionPhase::active && ticks > s.window.begin_ticks;
  if (open) {
    Window& window = s.window;
    window.begin_ticks = ticks;
    window.ready_ticks = 0;
    window.first_step = first_boundary_from(ticks);
    window.has_step = false;  // until a step begins, and is whole
    RingHeader& header = *ring()->header;
    header.window_ready_ticks.store(0);
    header.window_first_step.store(static_cast<uint32_t>(window.first_step));
    header.window_begin_ticks.store(ticks, std::memory_order_release);
  }
  s.step_lock.unlock();
  return open;
}

void follow_parent(uint64_t ticks) {
  Session& s = session();
  ParentWindow parent{};
  if (s.finishing.load() || !read_parent_window(parent) || !s.step_lock.try_lock()) return;
  const SessionPhase phase = s.phase.load();
  if (phase == SessionPhase::active) {
    follow_open_window(parent, ticks);
  } else if (phase == SessionPhase::waiting && parent.open && !is_early_window(parent.number) &&
             is_another(parent) && has_room_to_follow()) {
    s.next_window = parent.number + 1;
    open_window(parent.number, parent.first_step, parent.begin_ticks);
    drain_request(DrainCommand::watch);
  }
  s.step_lock.unlock();
}

bool steps_control(const ControlRequest& request, ControlResult& result) {
  Session& s = session();
  if (!ready() || !s.step_lock.try_lock()) return false;
  result = ControlResult::accepted;
  if (request.command == ControlCommand::window) {
    result = ask_for_window(request);
  } else if (request.command == ControlCommand::off || s.plan->is_off()) {
    const bool off = request.command == ControlCommand::off;
    if (off) stop_recording();
    s.plan->switch_off(off ? UINT64_MAX : request.step);
    // No step begins the window of the whole program.
    if (!off && s.config.schedule.all) begin_window(s.next_window, s.boundaries, now_ticks());
    ring()->header->recording_off.store(off);
    log_line(LogLevel::info, "recording is switched %s, as asked by gpuprof trigger",
             off ? "off" : "on");
  }
  s.step_lock.unlock();
  return true;
}

// The program ends before `auto` has chosen: a window that belongs to no schedule has the steps of
// what waited. Under step_lock.
static void settle_source() {
  Session& s = session();
  const bool ends = s.finishing.load();
  const bool free = s.phase.load() == SessionPhase::active && is_free_window(s.window);
  if (!ends || !free || s.tracker.source() != StepSource::automatic) return;
  const StepTracker::Result result = s.tracker.settle();
  if (result.count == 0) return;
  s.source_came_late = true;
  for (size_t i = 0; i < result.count; ++i) log_boundary(result.ticks[i]);
  publish_source();
  settle_steps(s.window);
}

void cut_window(const char* reason) {
  Session& s = session();
  // Bounded: the thread that holds the lock may be the one that a signal handler now makes exit.
  for (int tries = 0; !s.step_lock.try_lock(); ++tries) {
    if (tries > 1000) return;
    ::usleep(1000);
  }
  settle_source();
  // Read here: what is recorded until hooks are off, and taken already, lies in the window.
  const uint64_t ticks = now_ticks();
  if (early_is_open()) {
    // Of a program without steps the last seconds are kept; of others the first ones.
    settle_steps(s.window);
    const bool stepped =
        static_cast<uint32_t>(s.window.last_step + 1) > static_cast<uint32_t>(s.window.first_step);
    s.wants_early = s.wants_early && (!stepped || s.tracker.source() == StepSource::time);
    s.window.keeps_cupti = s.wants_early;
    end_window(ticks, reason, true);
  } else if (s.phase.load() == SessionPhase::active) {
    end_window(ticks, reason, true);
    s.plan->cut();
  }
  s.step_lock.unlock();
}

}  // namespace gpuprof
