// SPDX-License-Identifier: Apache-2.0
#include "collector/window/window_dump.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collector/base/environment.h"
#include "collector/base/host.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/samples/data_worker.h"
#include "collector/samples/native_samples.h"
#include "collector/samples/samples.h"
#include "collector/samples/workers.h"
#include "collector/sources/event_times.h"
#include "collector/sources/interconnect.h"
#include "collector/sources/memory_log.h"
#include "collector/sources/nvml.h"
#include "collector/stacks/mapped_files.h"
#include "collector/window/drain.h"
#include "collector/window/identity.h"
#include "collector/window/late_calls.h"
#include "collector/window/metrics/metrics.h"
#include "collector/window/ready_command.h"
#include "formats/core/early_window.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs;
constexpr uint64_t kWaitForGpu = 2 * kSecond;   // for launches still running when a window ends
constexpr uint64_t kWaitForGpuEarly = kSecond;  // where another window may be about to begin
constexpr uint64_t kWaitForPerhaps = 50 * kMs;  // for records that there may not be

// Not of launches whose context is lost.
bool more_gpu_records_come() { return cupti_is_attached() || event_times_await(); }
bool gpu_records_come() { return cupti_is_attached() || event_times_wanted(); }

// By hooks alone nothing awaits a launch that has no record itself: events know of it.
uint64_t work_without_call(const Drain& drain) {
  return event_times_left(
      [](const void* collector, uint32_t id) {
        return static_cast<const WindowCollector*>(collector)->expects(id);
      },
      &drain.collector);
}

// Takes records until every launch of the window has its GPU record, 2 s at most.
void collect_to_the_end(Drain& drain, const Window& window) {
  const bool exiting = drain_is_asked_for(DrainCommand::exit);
  let_calls_be_recorded();
  const uint64_t begun = monotonic_ns();
  // Without launch records nothing tells what to wait for: give running kernels a moment. CUPTI
  // keeps a buffer back while work of after the window is in it, too.
  const bool awaits = activity_on(Activity::api);
  if (!awaits && cupti_is_attached()) ::usleep(100000);
  for (;;) {
    cupti_flush(!awaits);
    event_times_collect();
    drain.collector.collect(drain.file, true, window.end_ticks);
    const WindowCollector::Missing missing = drain.collector.missing();
    const uint64_t awaited = missing.awaited + work_without_call(drain);
    if (!more_gpu_records_come() || (awaited == 0 && missing.perhaps == 0)) break;
    const bool hurry = is_early_window(window.number) && !exiting;
    const uint64_t longest = awaited == 0 ? kWaitForPerhaps
                             : hurry      ? kWaitForGpuEarly
                                          : kWaitForGpu;
    if (monotonic_ns() - begun > longest) {
      // CUPTI keeps a buffer back while work of after the window is in it that still runs. What of
      // it has no times then is not the window's, or has taken too long.
      cupti_flush(true);
      event_times_collect(true);
      drain.collector.collect(drain.file, true, window.end_ticks);
      break;
    }
    ::usleep(5000);
    drain_note_progress();
  }
  if (!gpu_records_come()) return;
  const WindowCollector::Missing missing = drain.collector.missing();
  count_loss(Loss::unfinished_gpu, missing.unfinished + work_without_call(drain));
  const uint64_t untimed = missing.untimed_graph_launches;
  if (untimed == 0) return;
  count_loss(Loss::graph_untimed, untimed);
  log_line(LogLevel::warn, "%llu graph launches have no GPU times: %s",
           static_cast<unsigned long long>(untimed),
           cupti_has_no_graph_times()
               ? "CUPTI has timed graphs as a whole before in this process (graph:trace, or the "
                 "program's own profiler), and gives no records of their nodes since"
           : cupti_times_graphs()
               ? "CUPTI has none for the whole of a graph that was instantiated before it was "
                 "attached; GPUPROF_ACTIVITIES=+graph:node records its nodes"
               : "CUPTI gave no records of their nodes, as for what is inside conditional nodes");
}

WindowTotals totals_of(const Drain& drain, const Window& window, const LossCounts& losses) {
  WindowTotals totals{};
  totals.events = drain.collector.events() - std::min(drain.left_out, drain.collector.events());
  totals.left_out = drain.left_out;
  totals.hook_records = drain.collector.hook_records();
  totals.hook_cost_ns = static_cast<uint64_t>(sum_of(
      drain.collector.costs().since({}, losses[static_cast<size_t>(Loss::buffer_full)],
                                    drain.hook_cost.ns_per_record, session().clock.ticks_per_ns)));
  totals.drain_cpu_ns = thread_cpu_ns() - drain.cpu_at_begin;
  totals.samples_cpu_ns = samples_cpu_ns();
  if (session().loads_data) totals.process_cpu_ns = process_cpu_ns() - drain.process_cpu_at_begin;
  totals.cupti_overhead_ns = static_cast<uint64_t>(static_cast<double>(cupti_overhead_ticks()) /
                                                   session().clock.ticks_per_ns);
  // Of what was recorded in the part of the window that its dump has.
  const auto of_kept = [&](uint64_t cost) {
    const auto all = static_cast<double>(window.end_ticks - window.opened_ticks);
    const auto kept = static_cast<double>(window.end_ticks - window.begin_ticks);
    return drain.left_out == 0 || all <= 0
               ? cost
               : static_cast<uint64_t>(static_cast<double>(cost) * kept / all);
  };
  for (uint64_t* const cost : {&totals.hook_records, &totals.hook_cost_ns, &totals.drain_cpu_ns,
                               &totals.samples_cpu_ns, &totals.cupti_overhead_ns}) {
    *cost = of_kept(*cost);
  }
  return totals;
}

// The process ends without a better window.
void leave_early_dump(Drain& drain) {
  if (!drain.early.leave()) return;
  drain.failures_written = std::max(drain.failures_written, drain.early.failures());
}

// The process ends, and an allocation has failed that is in no dump: it gets one of its own.
void dump_failed_allocation(Drain& drain) {
  Session& s = session();
  const uint64_t ticks = failed_allocation_ticks();
  if (ticks == 0 || !failed_allocation_is_new(drain.failures_written)) return;
  s.window = Window{
      s.next_window++, s.boundaries, ticks, 0,     ticks, s.boundaries - 1, true, "out_of_memory",
      false,           false,        true,  ticks, ""};
  update_latest_link(LatestLink::replaced);
  drain.file.open(s.stem, s.window.number);
  write_header(drain);
  write_failed_allocation(drain);
  drain.body.clear();
  if (encode_known_modules(drain.body)) drain.file.write(ChunkKind::modules, drain.body);
  drain.steps.write(drain.file, s.window);
  drain.body.clear();
  const LossCounts losses = new_losses();
  if (encode_summary(drain.body, s.window, WindowTotals{}, losses)) {
    drain.file.write(ChunkKind::summary, drain.body);
  }
  note_dumped_losses(losses);
  if (drain.file.finish() != DumpOutcome::complete) return;
  run_ready_command(drain.file.path());
  note_memory_dump(drain.file.path());
}

// Its begin may still be where it was before the oldest events had to go.
Window window_as_kept(const Drain& drain) {
  Window window = session().window;
  if (drain.moved_to <= window.begin_ticks) return window;
  window.begin_ticks = drain.moved_to;
  window.ready_ticks = 0;
  window.has_step = false;
  if (window.end_ticks) settle_steps(window);
  return window;
}

// Everything so far, in the order that makes the file a complete dump. Returns the losses in it.
LossCounts write_to_the_end(Drain& drain, const Window& window) {
  collect_to_the_end(drain, window);
  add_anchor();
  keep_modules(drain);
  drain.collector.flush(drain.file);
  if (activity_on(Activity::step)) drain.steps.write(drain.file, window);
  write_graph_nodes(drain);
  write_nvtx_names(drain);
  write_failed_allocation(drain);
  budget_window_ends(drain, window.end_ticks, session().window.end_ticks != 0);
  workers_sample(now_ticks(), true);
  write_counters(drain);
  // At exit NVML may have been taken down.
  if (std::strcmp(window.end_reason, "exit") != 0) look_at_interconnect(monotonic_ns());
  write_cuda(drain);
  drain.body.clear();
  LossCounts losses = new_losses();
  if (encode_summary(drain.body, window, totals_of(drain, window, losses), losses)) {
    drain.file.write(ChunkKind::summary, drain.body);
  }
  // If that could not be written, it is no loss of the next dump.
  constexpr auto kWriteError = static_cast<size_t>(Loss::write_error);
  losses[kWriteError] = new_losses()[kWriteError];
  return losses;
}

// Of an early window: a process that asks for GPUs and does nothing on them leaves no dump.
bool is_worth_keeping(const Drain& drain, const Window& window) {
  return drain.collector.work() != 0 || has_whole_step(window);
}

}  // namespace

void detach_cupti() {
  if (!cupti_is_attached()) return;
  cupti_detach();
  forget_losses_of_cupti();
}

static void say_where_nvtx_goes() {
  if (!g_host.nvtx_goes_elsewhere.exchange(false)) return;
  const char* const path = find_in_environment(kept_environment(), "NVTX_INJECTION64_PATH");
  if (!path || !activity_on(Activity::nvtx)) return;
  log_line(LogLevel::warn,
           "NVTX ranges go to another tool (NVTX_INJECTION64_PATH=%s): none is recorded, and no "
           "step by them",
           path);
}

// Once for each: calls of what is linked to it have no hooks.
static void say_other_copy() {
  const char* const name = g_host.other_copy.exchange(nullptr, std::memory_order_acquire);
  if (!name) return;
  log_line(LogLevel::info,
           "%s is beside another copy of that library: calls of what is linked to it are recorded "
           "through CUPTI alone",
           name);
}

void open_dump(Drain& drain) {
  Session& s = session();
  const Window& window = s.window;  // its ready_ticks may be written now
  if (is_early_window(window.number)) drain.failures_before_early = drain.failures_written;
  add_anchor();
  cupti_window_begins(window.end_ticks);
  drain.collector.begin(window.number, window.begin_ticks);
  drain.cpu_at_begin = thread_cpu_ns();
  drain.process_cpu_at_begin = process_cpu_ns();
  // An early window may leave nothing.
  const bool early = is_early_window(window.number);
  if (!s.loads_data) update_latest_link(early ? LatestLink::kept : LatestLink::replaced);
  drain.file.open(s.stem, window.number);
  native_samples_window_begins();
  samples_window_begins();  // the header has the notes of both
  write_header(drain);
  budget_window_begins(drain);
  if (drain.vendor_code_may_map) nvml_begin();
  workers_begin();
  drain.window_open = true;
  drain.left_out = drain.moved_to = 0;
  drain.last_look = 0;
  drain.said_no_records = false;
  drain.modules_written = 0;
  keep_modules(drain);
  drain.graph_nodes = 0;
  write_graph_nodes(drain);
  drain.replayed_graphs = 0;
  write_replayed_graphs(drain);
  drain.nvtx_names = 0;
  write_nvtx_names(drain);
  drain.body.clear();
  if (encode_live_at_begin(drain.body, window.number)) {
    drain.file.write(ChunkKind::live_memory, drain.body);
  }
  drain.last_flush = monotonic_ns();
}

void close_dump(Drain& drain) {
  say_other_copy();
  say_where_nvtx_goes();
  Session& s = session();
  cancel_ready_command();
  if (!drain.window_open) open_dump(drain);
  const Window window = window_as_kept(drain);
  samples_window_ends();
  native_samples_window_ends();
  if (window.dropped) {
    event_times_collect();
    drain.collector.collect(drain.file, true, window.end_ticks);
    drain.collector.flush(drain.file);
    drain.file.discard();
    const LossCounts losses = without_lasting(new_losses());
    note_dumped_losses(losses);
    forget_dumped_losses(losses);
  } else if (is_early_window(window.number)) {
    const LossCounts losses = without_lasting(write_to_the_end(drain, window));
    note_dumped_losses(losses);
    const bool worth = is_worth_keeping(drain, window);
    if (worth && !s.loads_data) update_latest_link(LatestLink::replaced);
    // Until it is left, what is in it is in no dump.
    const uint32_t failures = std::exchange(drain.failures_written, drain.failures_before_early);
    drain.early.keep(drain.file, {window, totals_of(drain, window, losses), losses, failures},
                     worth);
  } else {
    const LossCounts losses = write_to_the_end(drain, window);
    note_dumped_losses(losses);
    const DumpOutcome outcome = drain.file.finish();
    if (outcome == DumpOutcome::complete) run_ready_command(drain.file.path());
    note_window_totals(window, totals_of(drain, window, losses),
                       {outcome, drain.file.error(), drain.file.path()});
    metrics_note_window(window, totals_of(drain, window, losses), losses, outcome, drain.budget,
                        drain.collector.use());
    if (outcome == DumpOutcome::complete && !drain.early.says_more_than(window)) drain.early.drop();
  }
  budget_window_is_over(drain, window);
  drain.window_open = false;
  event_times_end();
  turn_texts();
  // The next window may be near already; then CUPTI stays on.
  if (!window.keeps_cupti && !drain_is_asked_for(DrainCommand::attach)) detach_cupti();
  if (!window.dropped && !is_early_window(window.number)) ++s.windows_done;
  SessionPhase closing = SessionPhase::closing;
  s.phase.compare_exchange_strong(closing, SessionPhase::waiting);
  ring()->header->phase.store(static_cast<uint32_t>(s.phase.load()));
}

bool keep_newest(Drain& drain) {
  const double most = session().config.schedule.max_mb * 1e6;
  const DumpFile::LeftOut left = drain.file.leave_out_oldest(static_cast<uint64_t>(most / 2));
  if (left.events == 0) return false;
  if (drain.left_out == 0) {
    log_line(LogLevel::info,
             "the dump has max_mb=%.6g megabytes: the oldest events make room for new ones",
             session().config.schedule.max_mb);
  }
  drain.left_out += left.events;
  drain.moved_to = left.ticks;
  (void)move_window_begin(left.ticks);  // else a little later, or as the window ends
  // What is no event takes too much of it.
  return static_cast<double>(drain.file.bytes()) < 0.75 * most;
}

void save_dump(Drain& drain) {
  if (!drain.window_open) return;
  cancel_ready_command();  // of another thread's exec: there is more now
  Window window = window_as_kept(drain);
  if (window.end_ticks == 0) {
    window.end_ticks = now_ticks();
    settle_steps(window);
    window.partial = true;
    window.end_reason = "exec";
  }
  drain.file.withdraw_summary();  // of another thread's exec, which goes on
  drain.collector.leave_later(session().window.end_ticks == 0);
  write_to_the_end(drain, window);
  drain.collector.leave_later(false);
  if (is_early_window(window.number) && !is_worth_keeping(drain, window)) return;
  drain.file.publish();
  // Should exec fail, there will be more of this dump.
  run_ready_command_after_exec(drain.file.path());
}

void leave_last_dumps(Drain& drain) {
  say_where_nvtx_goes();
  leave_early_dump(drain);
  if (!window_is_open()) dump_failed_allocation(drain);
}

}  // namespace gpuprof
