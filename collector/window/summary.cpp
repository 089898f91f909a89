// SPDX-License-Identifier: Apache-2.0
#include "collector/window/summary.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "collector/base/fork.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_directory.h"
#include "collector/base/redact.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/communicators.h"
#include "collector/record/ring.h"
#include "collector/sources/device_info.h"
#include "collector/sources/event_times.h"
#include "collector/sources/interconnect.h"
#include "collector/sources/memory_log.h"
#include "collector/steps/period_steps.h"
#include "formats/core/early_window.h"
#include "formats/core/shell_text.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

// Of all windows of the run; written by the drain thread, read when it has ended.
struct RunTotals {
  uint32_t windows;  // complete on disk
  uint32_t cut, lost;
  int error;  // errno of the first that is cut or lost
  char last_path[1600];
  uint64_t first_step, last_step;
  bool partial;
  const char* cut_by;  // the limit that ended the last window; null: none
  uint64_t cost_ns, window_ns;
  uint64_t events;
  uint64_t left_out;
  bool memory_dump;
  bool early;                          // the newest is an early one
  char source[sizeof Window::source];  // of its steps
} g_run;

// Records as a hook makes them, of a call that does nothing. ns for each.
double time_records(RingChunk& chunk) {
  t_state.next = &chunk.records[0];
  const uint64_t begun = monotonic_ns();
  for (uint32_t i = 0; i < kRecordsPerChunk; ++i) {
    const uint64_t begin = now_ticks();
    __asm__ volatile("" ::: "memory");
    const uint64_t end = now_ticks();
    Record* const record = try_reserve_record();
    if (!record || is_silence(record[-1].end, end)) continue;  // neither happens
    begin_record(record, Kind::event, begin, end, 0, i);
    for (auto& word : record->words) word = begin;
    commit_record(record);
  }
  return static_cast<double>(monotonic_ns() - begun) / kRecordsPerChunk;
}

}  // namespace

// Into memory that has been touched, and is more than a core's own caches keep: where a record goes
// the drain thread has read another one. The median of buffers, so that a pause does not count.
HookCost measure_hook_cost() {
  constexpr size_t kMost = 32;
  double ns[kMost];
  for (size_t count = kMost; count > 0; count /= 2) {
    const size_t bytes = (count + 1) * kChunkBytes;  // buffers lie at multiples of their size
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) continue;
    const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~uintptr_t{kChunkBytes - 1};
    auto* const chunks = reinterpret_cast<RingChunk*>(end - count * kChunkBytes);
    Record* const before = t_state.next;
    for (int pass = 0; pass < 2; ++pass) {  // the first touches
      for (size_t i = 0; i < count; ++i) ns[i] = time_records(chunks[i]);
    }
    t_state.next = before;
    ::munmap(memory, bytes);
    std::nth_element(ns, ns + count / 2, ns + count);
    return {ns[count / 2]};
  }
  return {};  // where there is no memory for this, there is none for a dump
}

bool encode_summary(ByteBuffer& buffer, const Window& window, const WindowTotals& totals,
                    const LossCounts& losses) {
  const RingHeader& header = *ring()->header;
  WireWriter out(buffer);
  encode_clock(out, 1, header);
  out.uint(2, window.begin_ticks);
  out.uint(3, window.end_ticks);
  out.uint(4, static_cast<uint32_t>(window.first_step));
  out.uint(5, static_cast<uint32_t>(window.last_step));
  out.uint(6, window.partial);
  out.text(7, window.end_reason);
  for (uint32_t cause = 0; cause < kLossKinds; ++cause) {
    if (!losses[cause]) continue;
    const size_t mark = out.open(8);
    out.uint(1, cause);
    out.uint(2, losses[cause]);
    out.close(mark);
  }
  out.uint(18, window.ready_ticks);
  out.uint(9, totals.events);
  out.uint(10, totals.hook_records);
  out.uint(11, totals.hook_cost_ns);
  out.uint(12, totals.drain_cpu_ns);
  out.uint(13, totals.cupti_overhead_ns);
  char missing[1024];
  out.text(14, shown_text(gpu_times_missing(), missing, sizeof missing));
  char source[160];
  describe_step_source_of(window, source, sizeof source);
  out.text(15, source);
  out.uint(16, totals.samples_cpu_ns);
  out.uint(17, totals.process_cpu_ns);
  out.uint(24, totals.left_out);
  out.uint(19, cupti_attach_ns());
  out.text(22, cupti_api_in_use());
  const bool by_events = event_times_wanted();
  const uint64_t error = by_events ? event_times_error_ticks() : cupti_clock_error_ticks();
  out.uint(20, static_cast<uint64_t>(static_cast<double>(error) / session().clock.ticks_per_ns));
  if (by_events) out.text(25, "events");
  encode_communicators(out, 21, window.begin_ticks);
  encode_interconnect(out);
  return out.ok();
}

void note_window_totals(const Window& window, const WindowTotals& totals, const WindowDump& dump) {
  if (dump.outcome != DumpOutcome::complete) {
    (dump.outcome == DumpOutcome::cut ? g_run.cut : g_run.lost)++;
    if (g_run.error == 0) g_run.error = dump.error;
    return;
  }
  std::snprintf(g_run.last_path, sizeof g_run.last_path, "%s", dump.path);
  if (g_run.windows++ == 0 || is_early_window(window.number)) g_run.first_step = window.first_step;
  g_run.last_step = window.last_step;
  g_run.early = is_early_window(window.number);
  describe_step_source_of(window, g_run.source, sizeof g_run.source);
  // The window of the whole program ends with it; an early one is none of the schedule's.
  const bool whole = session().config.schedule.all && std::strcmp(window.end_reason, "exit") == 0;
  g_run.partial = window.partial && !whole && !g_run.early;
  const bool limited = std::strncmp(window.end_reason, "max_", 4) == 0;
  g_run.cut_by = limited ? window.end_reason : nullptr;
  g_run.cost_ns += totals.hook_cost_ns + totals.cupti_overhead_ns;
  g_run.window_ns += static_cast<uint64_t>(
      static_cast<double>(window.end_ticks - window.begin_ticks) / session().clock.ticks_per_ns);
  g_run.events += totals.events;
  g_run.left_out += totals.left_out;
}

void note_memory_dump(const char* path) {
  g_run.memory_dump = true;
  char word[1700];
  log_line(
      LogLevel::warn,
      "an allocation of %" PRIu64
      " bytes failed, out of memory; what was allocated then is in %s. Next: gpuprof report %s",
      failed_allocation_bytes(), path, quote_for_shell(path, word, sizeof word));
}

namespace {

// A schedule whose window lies in a run of so many steps: its second half, or, of few, all but the
// first ones.
void suggest_schedule(uint64_t complete, char* out, size_t size) {
  const uint64_t skip = complete > 8 ? complete / 2 : complete > 4 ? 1 : 0;
  const int warmup = complete > 2;
  const uint64_t active = complete > 8   ? std::max<uint64_t>(3, complete / 4)
                          : complete > 2 ? complete - skip - 1
                                         : std::max<uint64_t>(1, complete);
  std::snprintf(out, size, "skip_first=%" PRIu64 ",warmup=%d,active=%" PRIu64, skip, warmup,
                active);
}

// Windows whose dumps are not whole, or not there.
void print_missing_windows() {
  if (g_run.cut == 0 && g_run.lost == 0) return;
  log_line(LogLevel::warn,
           "%u of %u windows are not whole: %u lost, %u cut short (readable up to there), in %s: "
           "%s; set GPUPROF_OUTPUT to a directory with room that this program may write to",
           g_run.cut + g_run.lost, g_run.windows + g_run.cut + g_run.lost, g_run.lost, g_run.cut,
           session().directory, std::strerror(g_run.error));
}

// Whether it lies in the directory that is held open, wherever that is now.
bool lies_in_run_directory(const char* path) {
  struct stat info {};
  return ::syscall(SYS_newfstatat, run_directory().descriptor(), name_in_directory(path), &info,
                   AT_SYMLINK_NOFOLLOW) == 0;
}

// Where the user finds this run, as a word of a shell: `latest` if it leads there.
void run_folder(char* out, size_t size) {
  const char* const directory = session().directory;
  const char* const slash = std::strrchr(directory, '/');
  char link[1200], target[300] = "";
  std::snprintf(link, sizeof link, "%.*s/latest", slash ? static_cast<int>(slash - directory) : 0,
                directory);
  const bool leads_here = slash && ::readlink(link, target, sizeof target - 1) > 0 &&
                          std::strcmp(target, slash + 1) == 0;
  quote_for_shell(leads_here ? link : directory, out, size);
}

// One line for all that is not in the dumps as it should be.
void print_losses() {
  constexpr struct {
    Loss cause;
    const char* text;
  } kTexts[] = {
      {Loss::buffer_full, "records for which there was no buffer (raise GPUPROF_BUFFER_MB)"},
      {Loss::string_table_full,
       "events without their name, for which there was no room (fewer distinct texts in a window "
       "help)"},
      {Loss::shape_table_full, "launches without their grid and block, for want of room"},
      {Loss::nvtx_depth, "NVTX ranges nested too deep"},
      {Loss::step_log_full, "steps that are not in the step log"},
      {Loss::cupti_dropped, "GPU records that CUPTI dropped"},
      {Loss::cupti_unknown, "GPU records of unknown kind"},
      {Loss::cupti_incomplete, "CUPTI buffers that could not be read to their end"},
      {Loss::bad_timestamp, "GPU times that were zero or reversed, or outside the session"},
      {Loss::unfinished_gpu, "launches without a GPU record"},
      {Loss::graph_untimed, "launches of CUDA graphs for which CUPTI has no records"},
      {Loss::event_captured,
       "launches that became part of a CUDA graph, which CUDA events time as a whole"},
      {Loss::event_untimed, "launches, copies and sets without CUDA events around them"},
      {Loss::name_cut, "names longer than 65,535 bytes, or than there was room for, which are cut"},
      {Loss::gpu_unjoined,
       "GPU records of which the launch cannot be told (up to CUDA 13.1, windows after the first "
       "need graphs whose launches the program waits for)"},
      {Loss::stack_table_full,
       "call stacks for which there was no room (set GPUPROF_STACKS=launch:10 or so)"},
      {Loss::operator_depth, "operators nested too deep"},
      {Loss::sample_torn, "host samples whose frames changed while they were read"},
      {Loss::memory_log_full, "allocations for which the memory log had no room"},
      {Loss::heap_table_full, "sampled allocations whose release will not be seen"},
      {Loss::write_error, "parts of a dump that could not be written"},
  };
  static_assert(std::size(kTexts) == kLossKinds - 1, "a row for each cause; 10 is none");
  const LossCounts losses = all_losses();
  char line[900];
  size_t used = 0;
  for (const auto& row : kTexts) {
    const uint64_t count = losses[static_cast<size_t>(row.cause)];
    if (count == 0) continue;
    const int more = std::snprintf(line + used, sizeof line - used, "%s%" PRIu64 " %s",
                                   used ? ", " : "", count, row.text);
    if (more < 0 || static_cast<size_t>(more) >= sizeof line - used) break;
    used += static_cast<size_t>(more);
  }
  if (used) log_line(LogLevel::warn, "missing or wrong in the dump: %s", line);
}

// Why there is no window of the schedule, and what to set. `what`: what there is instead.
void print_why(const char* what, uint64_t complete, const char* source) {
  const Session& s = session();
  char directory[1200];
  quote_for_shell(s.directory, directory, sizeof directory);
  if (s.plan->postponed()) {
    log_line(
        LogLevel::warn,
        "%s: the program ended while CUPTI was being attached, before the steps that were to be "
        "recorded instead",
        what);
    return;
  }
  if (s.plan->is_off()) {
    log_line(LogLevel::info,
             "%s: recording was switched off by gpuprof trigger --off; "
             "gpuprof trigger %s --on switches it on, while the program runs",
             what, directory);
    return;
  }
  if (s.config.schedule.all) {
    log_line(LogLevel::info, "%s: the program ended before its window was open", what);
    return;
  }
  if (s.plan->waits_for_trigger()) {
    log_line(LogLevel::info,
             "%s: the program ended after %" PRIu64 " steps (%s), before step %" PRIu64
             ", from which on gpuprof trigger asked for a window",
             what, complete, source, s.plan->trigger_first());
    return;
  }
  if (s.plan->armed() && step_source() != StepSource::profiler) {
    log_line(LogLevel::info,
             "%s: nobody asked for it in %" PRIu64
             " steps (%s); gpuprof trigger %s does, while the program runs",
             what, complete, source, directory);
    return;
  }
  if (step_source() == StepSource::profiler) {
    log_line(LogLevel::info,
             s.bracket_came ? "%s: the windows that cudaProfilerStart was to open were left out"
                            : "%s: the program never called cudaProfilerStart; set GPUPROF_STEP "
                              "to what else marks a step, or leave it out",
             what);
    return;
  }
  if (step_source() == StepSource::period && s.boundaries == 0) {
    log_line(LogLevel::info,
             "%s: %s; set GPUPROF_STEP to what marks a step (nvtx:NAME, "
             "kernel:REGEX:N, sync:N, time:MS)",
             what,
             period_looks() < 2 ? "the program ended before its launches could tell its steps"
                                : "launches came in no order that repeats often enough");
    return;
  }
  if (s.start_up_boundaries != 0) {
    log_line(LogLevel::info,
             "%s: %" PRIu64
             " boundaries (%s) were taken for start-up, since the program made more "
             "CUDA graphs after them, and %" PRIu64
             " steps (%s) came then; set GPUPROF_STEP to what marks a step",
             what, s.start_up_boundaries, s.start_up_source, complete, source);
    return;
  }
  const bool by_clock = step_source() == StepSource::time;
  if (complete == 0 && !by_clock && step_source() != StepSource::automatic) {
    log_line(LogLevel::info,
             "%s: no whole step was seen (%s); set GPUPROF_STEP to what marks a step, or leave it "
             "out",
             what, source);
    return;
  }
  const uint64_t first = s.plan->first_step(0), last = s.plan->last_step(0);
  // `auto` knows a mark when it has come three times.
  const bool chooses = s.config.step.source == StepSource::automatic;
  if (complete > first && (s.source_came_late || (chooses && first < 3))) {
    log_line(LogLevel::info,
             "%s: what marks its %" PRIu64
             " steps (%s) was known %s, too late for the window of steps %" PRIu64 "-%" PRIu64
             "; set GPUPROF_STEP to it",
             what, complete, source,
             s.source_came_late ? "only when the program ended" : "after a few of them", first,
             last);
    return;
  }
  const bool some = complete > (chooses ? 8 : 0);  // of fewer, `auto` knows too few in time
  char schedule[96];
  suggest_schedule(complete, schedule, sizeof schedule);
  log_line(LogLevel::info,
           "%s: the program ended after %" PRIu64 " steps (%s), before the window of steps %" PRIu64
           "-%" PRIu64 "; set GPUPROF_SCHEDULE=all%s%s%s",
           what, complete, source, first, last, some ? ", or for example GPUPROF_SCHEDULE=" : "",
           some ? schedule : "",
           step_source() == StepSource::automatic
               ? ", and GPUPROF_STEP to what marks a step (nvtx:NAME, kernel:REGEX:N, sync:N, "
                 "period, time:MS, manual)"
               : "");
}

}  // namespace

void print_closing_line() {
  const Session& s = session();
  char source[160];
  describe_step_source(source, sizeof source);
  const uint64_t complete = s.boundaries ? s.boundaries - 1 : 0;
  if (s.loads_data) return;
  print_missing_windows();
  if (g_run.windows == 0 && (g_run.memory_dump || g_run.lost)) {
    if (g_run.lost && !g_run.cut) log_line(LogLevel::warn, "nothing was kept of this run");
    return;
  }
  char folder[1200];
  run_folder(folder, sizeof folder);
  if (g_run.windows == 0 && g_run.cut) {
    log_line(LogLevel::info, "no window is whole. Next: gpuprof report %s", folder);
    return;
  }
  if (g_run.windows && ::access(g_run.last_path, F_OK) != 0) {
    log_line(LogLevel::warn,
             lies_in_run_directory(g_run.last_path)
                 ? "%s is written, but this program cannot reach it by that path any more: it has "
                   "another root directory now, or somebody moved the run's"
                 : "%s is gone: something moved or deleted it while the program ran",
             g_run.last_path);
    return;
  }
  if (g_run.windows == 0 || g_run.early) {
    print_why(g_run.windows == 0   ? "nothing was recorded"
              : g_run.windows == 1 ? "an early window is all that was recorded"
                                   : "an early window has the most whole steps",
              complete, source);
  }
  if (g_run.windows == 0) return;
  print_losses();
  const double cost = g_run.window_ns ? 100.0 * static_cast<double>(g_run.cost_ns) /
                                            static_cast<double>(g_run.window_ns)
                                      : 0;
  char steps[64], marks[180];
  std::snprintf(marks, sizeof marks, " (%s)", g_run.source);
  if (static_cast<uint32_t>(g_run.last_step + 1) > static_cast<uint32_t>(g_run.first_step)) {
    std::snprintf(steps, sizeof steps, "steps %" PRIu64 "-%" PRIu64, g_run.first_step,
                  g_run.last_step);
    if (g_run.windows > 1) {
      const size_t used = std::strlen(steps);
      std::snprintf(steps + used, sizeof steps - used, " in %u windows", g_run.windows);
    }
  } else if (g_run.early || s.config.schedule.all) {
    std::snprintf(steps, sizeof steps, "no whole step");
    // The window may be of before `auto` knew the source.
    if (s.config.step.source == StepSource::automatic) marks[0] = '\0';
  } else {
    std::snprintf(steps, sizeof steps, "part of step %" PRIu64, g_run.first_step);
  }
  char ranks[48] = "";
  const bool several = s.place.world_size > 1;
  if (several) std::snprintf(ranks, sizeof ranks, ", %d ranks", s.place.world_size);
  char left_out[96] = "";
  if (g_run.left_out) {
    std::snprintf(left_out, sizeof left_out, " (the newest; %" PRIu64 " before them had to go)",
                  g_run.left_out);
  }
  log_line(LogLevel::info,
           "%s%s%s%s%s%s, %" PRIu64 " events%s%s, cost %.1f %%. Next: gpuprof report %s", steps,
           g_run.partial ? ", cut short" : "", g_run.partial && g_run.cut_by ? " by " : "",
           g_run.partial && g_run.cut_by ? g_run.cut_by : "", marks, ranks, g_run.events,
           several ? " on this one" : "", left_out, cost, folder);
}

namespace {
void forget_totals() { g_run = RunTotals{}; }
GPUPROF_FORGET_IN_CHILD(forget_totals);
}  // namespace

}  // namespace gpuprof
