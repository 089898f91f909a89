// SPDX-License-Identifier: Apache-2.0
#include "collector/window/drain.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/host.h"
#include "collector/base/loader_wait.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_pages.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_session.h"
#include "collector/cupti/cupti_threads.h"
#include "collector/python/bridge.h"
#include "collector/python/forward.h"
#include "collector/record/collector.h"
#include "collector/record/names.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/runs/run_lock.h"
#include "collector/samples/data_worker.h"
#include "collector/samples/samples.h"
#include "collector/samples/workers.h"
#include "collector/sources/event_times.h"
#include "collector/sources/heap.h"
#include "collector/sources/interconnect.h"
#include "collector/sources/memory_log.h"
#include "collector/sources/nvml.h"
#include "collector/stacks/mapped_files.h"
#include "collector/stacks/stacks.h"
#include "collector/torch/operators.h"
#include "collector/window/budget.h"
#include "collector/window/control.h"
#include "collector/window/identity.h"
#include "collector/window/metrics/metrics.h"
#include "collector/window/prune.h"
#include "collector/window/ready_command.h"
#include "collector/window/summary.h"
#include "collector/window/window_dump.h"
#include "formats/core/early_window.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMs = 1000000;
constexpr uint64_t kSecond = 1000 * kMs;
constexpr int kExitCodeField = 52;  // of proc(5), of the first thread
constexpr uint64_t kPollActive = 20 * kMs;
constexpr uint64_t kPollIdle = 250 * kMs;
constexpr uint64_t kPollParent = 50 * kMs;
constexpr uint64_t kLookForEnd = 100 * kMs;
constexpr uint64_t kFlushPeriod = 500 * kMs;  // rule: at least once a second
constexpr uint64_t kAnchorPeriod = kSecond;
constexpr uint64_t kLockPeriod = 250 * kMs;
constexpr uint64_t kPruneNs = 20 * kMs, kPruneRestNs = 5 * kMs, kLastPruneNs = 500 * kMs;
constexpr double kEarlySeconds = 10;  // an early window ends, and another one begins
constexpr double kEarlyShare = 0.25;  // of max_mb

// Requests are bits in `wanted`; `word` changes with each, for the futex. `done` counts carried
// out.
std::atomic<uint32_t> g_wanted{0};
std::atomic<uint32_t> g_word{0};
std::atomic<uint32_t> g_progress{0};
enum Started : uint32_t { kStarts, kReady, kFailed, kGivenUp };
std::atomic<uint32_t> g_started{kStarts};
constexpr uint64_t kStartSeconds = 5;
std::atomic<uint32_t> g_ended{0};
std::atomic<uint32_t> g_tid{0};
std::atomic<bool> g_is_late{false};  // a step has waited in vain, and it was not idle since
// A thread of the program went on after the first had ended. Of the thread of this file.
bool g_main_was_outlived = false;

alignas(Drain) unsigned char g_drain_memory[sizeof(Drain)];
Drain* g_drain = nullptr;

void check_limits(Drain& drain, uint64_t ticks) {
  const Session& s = session();
  const ScheduleSpec& spec = s.config.schedule;
  if (ticks < s.window.opened_ticks) return;  // after this look
  if (drain.moved_to > s.window.begin_ticks) (void)move_window_begin(drain.moved_to);
  const double seconds =
      static_cast<double>(ticks - s.window.opened_ticks) / (s.clock.ticks_per_ns * 1e9);
  const double megabytes = static_cast<double>(drain.file.bytes()) / 1e6;
  if (is_early_window(s.window.number)) {
    const bool large = spec.max_mb > 0 && megabytes > kEarlyShare * spec.max_mb;
    if (seconds > kEarlySeconds || large) cut_window("early");
    return;
  }
  if (spec.max_s > 0 && seconds > spec.max_s) cut_window("max_s");
  if (spec.max_mb > 0 && megabytes > spec.max_mb && !(spec.all && keep_newest(drain))) {
    cut_window("max_mb");
  }
}

void carry_out_requests(Drain& drain) {
  // One window may end where the next begins: its records first.
  for (const DrainCommand command :
       {DrainCommand::close, DrainCommand::yield, DrainCommand::detach, DrainCommand::attach,
        DrainCommand::watch, DrainCommand::save, DrainCommand::unsave}) {
    const uint32_t bit = static_cast<uint32_t>(command);
    if (!drain_is_asked_for(command)) continue;
    if (command == DrainCommand::yield) cupti_yield();
    if (command == DrainCommand::attach) {
      heap_prepare();
      populate_more();  // what the window begins with
      operators_prepare();
      cupti_attach();
    }
    if (command == DrainCommand::watch && window_is_open() && !drain.window_open) open_dump(drain);
    if (command == DrainCommand::close) close_dump(drain);
    if (command == DrainCommand::detach && !window_is_open()) detach_cupti();
    if (command == DrainCommand::save) {
      metrics_end();
      save_dump(drain);
    }
    // Not if another thread has called exec since.
    if (command == DrainCommand::unsave && session().execs.load() == 0) {
      metrics_go_on();
      cancel_ready_command();
      if (drain.window_open) drain.file.unpublish();
    }
    g_wanted.fetch_and(~bit, std::memory_order_acq_rel);
    g_progress.fetch_add(1, std::memory_order_release);
    futex_wake_all(g_progress);
  }
}

// Once a window: CUPTI is asked for what it has every half second, so launches of a second ago
// without any record mean that there are none, or that the first one still runs.
void look_for_records(Drain& drain, uint64_t ticks) {
  if (!cupti_is_attached()) return;
  const auto second = static_cast<uint64_t>(session().clock.ticks_per_ns * kSecond);
  const size_t launches =
      drain.collector.launches_without_records(cupti_attached_ticks(), ticks - second);
  if (launches == 0) return;
  drain.said_no_records = true;
  log_line(LogLevel::warn,
           "no GPU record has come for %zu launches within a second: CUPTI keeps them back while "
           "work of theirs runs, or it records nothing any more (another profiler's session before "
           "can do that)",
           launches);
}

// Classes of PyTorch's modules that were made since.
void look_for_modules(Drain& drain, uint64_t now_ns) {
  constexpr uint64_t kEvery = kSecond;
  const StepSource source = step_source();
  const bool wanted = source == StepSource::automatic || source == StepSource::forward ||
                      source == StepSource::time;  // which calls of modules may follow
  if (!wanted) return;
  if (now_ns - drain.last_module_look < kEvery) return;
  drain.last_module_look = now_ns;
  forward_tick();
}

void tick(Drain& drain) {
  const uint64_t now_ns = monotonic_ns();
  const uint64_t ticks = now_ticks();
  if (session().loads_data) {
    follow_parent(ticks);
  } else {
    steps_tick(ticks);
    control_tick(now_ns);
    metrics_tick(now_ns);
    look_for_modules(drain, now_ns);
  }
  if (now_ns - drain.last_anchor > kAnchorPeriod) {
    drain.last_anchor = now_ns;
    add_anchor();
  }
  drain.steps.make_room();
  if (now_ns - drain.last_lock_look > kLockPeriod) {
    drain.last_lock_look = now_ns;
    keep_run_locked();
  }
  const SessionPhase phase = session().phase.load(std::memory_order_relaxed);
  if (phase == SessionPhase::warmup || phase == SessionPhase::active) {
    cupti_try_again();
    cupti_ask_for_ids();
    event_times_tick();
  }
  keep_modules(drain);
  if (!window_is_open() || !drain.window_open) return;
  if (now_ns - drain.last_flush > kFlushPeriod) {
    drain.last_flush = now_ns;
    cupti_flush(false);
  }
  write_cuda(drain);
  nvml_sample(ticks);
  look_at_interconnect(now_ns);
  workers_sample(ticks, false);
  if (now_ns - drain.last_counters > kSecond) {
    drain.last_counters = now_ns;
    write_counters(drain);
    write_failed_allocation(drain);  // failures may come by the thousand
  }
  write_graph_nodes(drain);
  write_nvtx_names(drain);
  drain.collector.note_function_names();
  budget_tick(drain, ticks);
  drain.collector.collect(
      drain.file, false, 0,
      [](void* context) { budget_tick(*static_cast<Drain*>(context), now_ticks()); }, &drain);
  if (!drain.said_no_records && now_ns - drain.last_look > kFlushPeriod) {
    drain.last_look = now_ns;
    look_for_records(drain, ticks);
  }
  // Many short threads fill the pool with nearly empty buffers: write early.
  if (free_chunks() < ring()->header->chunk_count / 2) drain.collector.flush(drain.file);
  check_limits(drain, ticks);
  g_progress.fetch_add(1, std::memory_order_relaxed);
}

// A program whose address space is limited must not fail for want of what we take: at most half of
// what is left.
bool leaves_address_space() {
  constexpr uint64_t kMiB = 1024 * 1024,
                     kTablesAndHeap = 128 * kMiB;  // of the ring, of our threads
  const uint64_t buffer_mb = session().config.buffer_mb;
  const uint64_t needed = buffer_mb * kMiB + kCuptiBufferBytes + kTablesAndHeap;
  const uint64_t left = address_space_left();
  if (left / 2 >= needed) return true;
  log_line(
      LogLevel::error,
      "RLIMIT_AS leaves %llu MB of address space; gpuprof takes %llu MB, and half at most: raise "
      "it (ulimit -v); this program runs unprofiled",
      static_cast<unsigned long long>(left / kMiB), static_cast<unsigned long long>(needed / kMiB));
  return false;
}

bool prepare() {
  if (!leaves_address_space()) return false;
  Session& s = session();
  if (!s.loads_data) update_latest_link(LatestLink::kept);
  char path[1600], link[1600], why[1700] = "";
  make_ring_names(path, sizeof path, link, sizeof link);
  touch_own_pages();
  prepare_stacks();
  const RingStacks stacks = stacks_are_on() ? RingStacks::native
                            : python_is_known() && activity_on(Activity::samples)
                                ? RingStacks::samples
                                : RingStacks::none;
  // Brackets of the program's own come without a word before.
  const bool waits = s.config.mode == Mode::armed && s.config.step.source != StepSource::profiler;
  const RingSizes sizes{s.config.buffer_mb, stacks, s.config.memory, s.loads_data, waits};
  if (!create_ring(path, sizes, s.clock, g_host.process_start_ticks, why, sizeof why)) {
    log_line(LogLevel::error, "no memory for %u MB of buffers; this program runs unprofiled",
             s.config.buffer_mb);
    return false;
  }
  if (why[0]) {
    log_line(LogLevel::warn, "%s; buffers are in memory only, a killed process loses its window",
             why);
  }
  ring_store_apis(api_rows(), api_count());
  publish_ring();
  if (!g_drain->collector.make_room()) {
    remove_ring_file();
    log_line(LogLevel::error, "no memory to read the buffers; this program runs unprofiled");
    return false;
  }
  memory_log_begins(s.config.memory);
  note_modules();
  store_known_kernels();
  control_begin();
  metrics_begin();
  ring_store_stem(s.stem);  // workers look for it
  link_ring(link);
  return true;
}

void finish_from_drain_thread() {
  Session& s = session();
  if (s.finishing.exchange(true)) return;
  cut_window("exit");
  carry_out_requests(*g_drain);
  leave_last_dumps(*g_drain);
  samples_stop();
  cupti_detach();
  wait_for_ready_commands();
  s.state.store(SessionState::finished, std::memory_order_release);
}

// The program ends, and nothing is left to be carried out. Whoever ends it may not have come to the
// window that is open: another thread did so at the same time, or a signal handler that has
// interrupted a mark.
bool is_to_end() {
  constexpr auto kExit = static_cast<uint32_t>(DrainCommand::exit);
  if (g_wanted.load(std::memory_order_acquire) != kExit) return false;
  if (window_is_open()) cut_window("exit");
  return g_wanted.load(std::memory_order_acquire) == kExit;
}

// The thread that is within a mark does not go on: what was recorded is read from the ring, as of a
// program that was killed.
void say_open_window() {
  const Session& s = session();
  log_line(LogLevel::warn,
           "window %u could not be ended: the program ended within the step that was to begin or "
           "end it; what was recorded is in %s*",
           s.window.number, s.stem);
}

// On this thread, which has the room: a signal handler on a small stack may end the program.
void say_end() {
  const bool stays_open = window_is_open();
  if (!stays_open) remove_ring_file();
  control_end();
  metrics_end();
  if (stays_open) return say_open_window();
  print_closing_line();
}

// The program has gone on without us.
void leave_nothing() {
  remove_ring_file();
  control_end();
  metrics_end();
}

// Until the next step by the clock is due, and no longer than `longest`. A step that was due and
// could not be marked is tried again soon.
uint64_t until_due(uint64_t longest) {
  const Session& s = session();
  const uint64_t now = now_ticks();
  if (s.next_due_ticks <= now) return kMs;
  const double left = static_cast<double>(s.next_due_ticks - now) / s.clock.ticks_per_ns;
  return left < static_cast<double>(longest) ? static_cast<uint64_t>(left) : longest;
}

// Looks at files, and so not at each look of the thread.
bool program_has_ended(Drain& drain) {
  const uint64_t now_ns = monotonic_ns();
  if (now_ns - drain.last_end_look < kLookForEnd) return false;
  drain.last_end_look = now_ns;
  return only_our_threads_are_left();
}

void* run(void*) {
  const BlockedScope blocked;
  ::prctl(PR_SET_NAME, "gpuprof");
  g_tid.store(current_tid());
  const bool ready = prepare();
  if (ready) {
    add_anchor();
    if (encode_header(g_drain->body, "", false)) keep_identity(g_drain->body);
  }
  uint32_t waits = kStarts;
  const bool in_time = g_started.compare_exchange_strong(waits, ready ? kReady : kFailed);
  futex_wake_all(g_started);
  if (ready && !in_time) leave_nothing();
  if (!ready || !in_time) return nullptr;
  Drain& drain = *g_drain;
  drain.hook_cost = measure_hook_cost();
  prune_begin();
  bool last = false, cupti_stays = false;
  for (;;) {
    const uint32_t seen = g_word.load(std::memory_order_acquire);
    const bool opens = drain_is_asked_for(DrainCommand::watch);
    carry_out_requests(drain);
    if (!opens) tick(drain);  // not beside a window's first step
    if (is_to_end()) break;
    if (program_has_ended(drain)) {
      finish_from_drain_thread();
      last = true;
      cupti_stays = cupti_threads() > 0;
      break;
    }
    const SessionPhase phase = session().phase.load(std::memory_order_relaxed);
    uint64_t wait = phase == SessionPhase::active ? kPollActive : kPollIdle;
    if (session().loads_data) {
      wait = kPollParent;
    } else if (step_source() == StepSource::time) {
      wait = until_due(wait);
    }
    // In a window the program has the processors.
    const bool wanted = phase == SessionPhase::warmup ||
                        (phase == SessionPhase::active && few_populated_chunks_are_left());
    if (wanted && populate_more()) continue;
    const bool between = phase != SessionPhase::warmup && phase != SessionPhase::active &&
                         phase != SessionPhase::closing;
    if (between && prune_some(kPruneNs)) wait = std::min(wait, kPruneRestNs);
    futex_wait(g_word, seen, wait);
  }
  leave_last_dumps(drain);
  samples_stop();
  cupti_detach();
  wait_for_ready_commands();
  prune_some(kLastPruneNs);
  say_end();
  g_ended.store(1, std::memory_order_release);
  futex_wake_all(g_progress);
  if (last) {
    // A first thread that left by the bare system call, which glibc does not count: no exit handler
    // runs, and the process has the code of the thread that ends last.
    const uint64_t status = stat_field(current_pid(), kExitCodeField);
    const uint64_t code = g_main_was_outlived ? 0 : (status >> 8) & 0xff;
    if (status != 0) ::syscall(SYS_exit_group, code);
    // Where CUPTI's threads do not stay, this one is the last to end: glibc calls exit(0) on it.
    if (cupti_stays) ::exit(0);
  }
  return nullptr;
}

}  // namespace

// Seen from outside, since nothing else tells.
bool only_our_threads_are_left() {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/stat", session().pid);
  if (!read_small_file(path, text, sizeof text)) return false;
  const char* const name_end = std::strrchr(text, ')');
  if (!name_end || name_end[1] != ' ' || name_end[2] != 'Z') return false;
  struct stat tasks {};
  // A directory's link count here is 2 and one for each thread.
  if (::syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &tasks, 0) != 0) return false;
  const bool alone = tasks.st_nlink <= 2 + 2 + samples_threads() + cupti_threads();
  if (!alone) g_main_was_outlived = true;
  return alone;
}

bool start_drain_thread() {
  g_drain = new (g_drain_memory) Drain;
  g_wanted = g_word = g_ended = 0;
  g_started = kStarts;
  if (const int failed = start_thread(run, 512 * 1024)) {
    log_line(LogLevel::error, "cannot start a thread: %s; this program runs unprofiled",
             std::strerror(failed));
    return false;
  }
  const uint64_t begun = monotonic_ns();
  while (g_started.load(std::memory_order_acquire) == kStarts &&
         monotonic_ns() - begun < kStartSeconds * kSecond) {
    futex_wait(g_started, kStarts, 100 * kMs);
  }
  uint32_t state = kStarts;
  if (g_started.compare_exchange_strong(state, kGivenUp)) {
    log_line(LogLevel::error,
             "buffers and files in %s were not ready within %u s; this program runs unprofiled",
             session().directory, static_cast<unsigned>(kStartSeconds));
  }
  return state == kReady;
}

void drain_request(DrainCommand command) {
  g_wanted.fetch_or(static_cast<uint32_t>(command), std::memory_order_acq_rel);
  drain_wake();
}

void drain_wake() {
  g_word.fetch_add(1, std::memory_order_release);
  futex_wake_all(g_word);
}

bool is_drain_thread() { return g_tid.load(std::memory_order_relaxed) == current_tid(); }

bool drain_is_asked_for(DrainCommand command) {
  return g_wanted.load(std::memory_order_acquire) & static_cast<uint32_t>(command);
}

namespace {
bool wait_until_carried_out(uint32_t commands, uint64_t timeout_ns) {
  if (is_drain_thread()) timeout_ns = 0;
  const uint64_t begun = monotonic_ns();
  for (;;) {
    const uint32_t seen = g_progress.load(std::memory_order_acquire);
    if (!(g_wanted.load(std::memory_order_acquire) & commands)) return true;
    if (timeout_ns == 0 || monotonic_ns() - begun > timeout_ns) return false;
    futex_wait(g_progress, seen, std::min(50 * kMs, timeout_ns));
  }
}
}  // namespace

bool drain_wait_idle(uint64_t timeout_ns) {
  constexpr uint32_t kSlow =
      static_cast<uint32_t>(DrainCommand::attach) | static_cast<uint32_t>(DrainCommand::close) |
      static_cast<uint32_t>(DrainCommand::save) | static_cast<uint32_t>(DrainCommand::unsave) |
      static_cast<uint32_t>(DrainCommand::yield);
  const bool idle = wait_until_carried_out(kSlow, timeout_ns);
  if (idle) g_is_late.store(false, std::memory_order_relaxed);
  return idle;
}

bool drain_wait_before_step() {
  const bool still_writes =
      g_is_late.load(std::memory_order_relaxed) && drain_is_asked_for(DrainCommand::close);
  if (drain_wait_idle(still_writes ? 0 : kLongestStepWaitNs)) return true;
  g_is_late.store(true, std::memory_order_relaxed);
  return false;
}

FirstWait drain_wait_before_first() {
  constexpr uint64_t kLook = 50 * kMs;
  constexpr uint32_t kStands = 3;  // looks in a row: it may just be another thread's turn
  const uint64_t begun = monotonic_ns();
  uint32_t at_loader = 0;
  while (at_loader < kStands && monotonic_ns() - begun < kLongestStepWaitNs) {
    if (drain_wait_idle(kLook)) return FirstWait::ready;
    at_loader = waits_for_loader(g_tid.load(std::memory_order_relaxed)) ? at_loader + 1 : 0;
  }
  if (at_loader == kStands) return FirstWait::at_loader;
  g_is_late.store(true, std::memory_order_relaxed);
  return FirstWait::late;
}

bool drain_wait_for(DrainCommand command, uint64_t timeout_ns) {
  return wait_until_carried_out(static_cast<uint32_t>(command), timeout_ns);
}

bool drain_wait_exit() {
  drain_request(DrainCommand::exit);
  uint64_t last_change = monotonic_ns();
  uint32_t seen = g_progress.load(std::memory_order_acquire);
  while (!g_ended.load(std::memory_order_acquire)) {
    if (is_drain_thread() || monotonic_ns() - last_change > 10 * kSecond) return false;
    futex_wait(g_progress, seen, 50 * kMs);
    const uint32_t now = g_progress.load(std::memory_order_acquire);
    if (now != seen) last_change = monotonic_ns();
    seen = now;
  }
  return true;
}

void drain_note_progress() { g_progress.fetch_add(1, std::memory_order_relaxed); }

namespace {
void forget_drain_thread() {
  if (g_drain) g_drain->file.forget();
  g_wanted = g_word = g_ended = 0;
  g_started = kStarts;
  g_tid = 0;
  g_is_late = g_main_was_outlived = false;
  g_drain = nullptr;
}
GPUPROF_FORGET_IN_CHILD(forget_drain_thread);
}  // namespace

}  // namespace gpuprof
