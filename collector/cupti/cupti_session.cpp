// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_session.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_callback.h"
#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_link.h"
#include "collector/cupti/cupti_sharing.h"
#include "collector/cupti/cupti_teardown.h"
#include "collector/cupti/cupti_threads.h"
#include "collector/record/collector.h"
#include "collector/record/cuda_start.h"
#include "collector/record/own_time.h"
#include "collector/record/session.h"
#include "collector/sources/event_times.h"

namespace gpuprof {
namespace {

// The drain thread's; others ask for what is atomic.
std::atomic<bool> g_load_failed{false};
std::atomic<bool> g_attached{false};
std::atomic<bool> g_attaching{false};
std::atomic<uint64_t> g_attach_ns{0};
std::atomic<bool> g_said_refusal{false};
char g_use_text[200] = "";
bool g_said_use = false;
bool g_finishes_first = false;  // when the program ends
uint64_t g_last_try_ns = 0;
constexpr uint64_t kRetryNs = 200000000;
// Times without CUPTI in the window, since somebody else held it, or CUDA was not there.
uint64_t g_gap_begin_ns = 0, g_gap_ns = 0;
bool g_gap_awaits_cuda = false;
// And since it was still being attached: when the newest window opened without it, and for how long
// it went on so.
std::atomic<uint64_t> g_opened_without{0};
uint64_t g_attached_ticks = 0, g_late_ticks = 0;
char g_gap_text[256] = "";
char g_said[sizeof g_link.missing] = "";

void begin_gap() {
  if (g_gap_begin_ns) return;
  g_gap_begin_ns = monotonic_ns();
  g_gap_awaits_cuda = g_link.awaits_cuda;
}

void end_gap() {
  if (g_gap_begin_ns) g_gap_ns += monotonic_ns() - g_gap_begin_ns;
  g_gap_begin_ns = 0;
}

void note_attach(uint64_t took_ns) {
  g_attach_ns = took_ns;
  constexpr uint64_t kLongNs = 100000000;
  log_line(took_ns < kLongNs ? LogLevel::debug : LogLevel::info, "attaching CUPTI took %.3f s",
           static_cast<double>(took_ns) / 1e9);
}

// Where another subscriber was there first, that is said, once.
void say_use() {
  const bool beside =
      g_link.is_subscriber() && g_link.first_name[0] && !std::exchange(g_said_use, true);
  log_line(beside ? LogLevel::info : LogLevel::debug, "CUPTI's functions in use: %s",
           cupti_api_in_use());
}

// What there are of both; "": neither.
void describe_gaps() {
  const double late = static_cast<double>(g_late_ticks) / session().clock.ticks_per_ns / 1e9;
  const double gap = static_cast<double>(g_gap_ns) / 1e9;
  char* const end = g_gap_text + sizeof g_gap_text;
  char* at = g_gap_text;
  *at = '\0';
  if (g_late_ticks) {
    at +=
        std::snprintf(at, sizeof g_gap_text, "for %.3f s of the window, until CUPTI was attached%s",
                      late, g_gap_ns ? "; " : "");
  }
  const auto left = static_cast<size_t>(end - at);
  if (g_gap_ns && g_gap_awaits_cuda) {
    std::snprintf(at, left, "for %.3f s of the window, until CUDA %s", gap,
                  event_times_wanted() ? "was loaded" : "had started and CUPTI was attached");
  } else if (g_gap_ns && g_link.holder[0]) {
    std::snprintf(at, left, "for %.3f s of the window, while %s used CUPTI", gap, g_link.holder);
  } else if (g_gap_ns) {
    std::snprintf(at, left,
                  "for %.3f s of the window, in which CUDA started: CUPTI 13.2 is asked after that",
                  gap);
  }
}

bool is_due() {
  constexpr uint64_t kLookNs = 20000000;
  const bool awaits = g_link.awaits_cuda || g_link.awaits_driver;
  const uint64_t now = monotonic_ns();
  if (now - g_last_try_ns < (awaits ? kLookNs : kRetryNs)) return false;
  g_last_try_ns = now;
  if (g_link.awaits_cuda) return cuda_is_in_use();
  return !g_link.awaits_driver || driver_has_started();
}

// Once for each reason: it is tried again several times a second.
void say_missing() {
  if (std::strcmp(g_said, g_link.missing) == 0) return;
  std::snprintf(g_said, sizeof g_said, "%s", g_link.missing);
  // A program without CUDA has none to miss.
  log_line(g_link.awaits_cuda ? LogLevel::debug : LogLevel::warn, "no GPU times: %s",
           g_link.missing);
}

// Handlers run last in, first out: this one comes before those of CUPTI and CUDA, which were
// registered when they were loaded. After them a flush would find the driver gone.
void finish_before_cupti() {
  if (!std::exchange(g_finishes_first, true)) ::atexit([] { finish_session("exit"); });
}

// Times by events need CUDA's driver, which the runtime loads in its first call: a window may begin
// before that.
bool attach_events() {
  if (event_times_are_ready()) return true;
  g_link.try_again = g_link.awaits_cuda = !loaded_driver();
  if (g_link.awaits_cuda) {
    std::snprintf(g_link.missing, sizeof g_link.missing, "the program had not loaded CUDA");
    begin_gap();
    say_missing();
    return false;
  }
  g_link.missing[0] = '\0';
  if (!event_times_attach()) return false;
  end_gap();
  return true;
}

// Of a DataLoader's worker nobody expects times.
bool is_in_window() {
  const Session& s = session();
  const SessionPhase phase = s.phase.load(std::memory_order_relaxed);
  return !s.loads_data && (phase == SessionPhase::active || phase == SessionPhase::closing);
}

}  // namespace

bool cupti_attach() {
  if (event_times_wanted()) return attach_events();
  if (g_attached) return true;
  if (g_load_failed) return false;
  g_link.try_again = false;
  g_last_try_ns = monotonic_ns();
  const uint64_t begun = now_ticks();
  g_attaching = true;
  {
    const CuptiThreadsWatch watch;
    g_attached = attach_cupti();
  }
  g_attaching = false;
  if (g_attached) {
    g_attached_ticks = now_ticks();
    note_attach(monotonic_ns() - g_last_try_ns);
    note_own_time_of_all(OwnTime::attach, begun, now_ticks());
    say_use();
    end_gap();
    g_said[0] = '\0';
    finish_before_cupti();
    return true;
  }
  // A subscription that another tool holds may be free for the next window.
  g_load_failed = !g_link.loaded && !g_link.awaits_cuda;
  if (g_link.try_again) begin_gap();
  say_missing();
  return false;
}

void cupti_try_again() {
  if (g_attached || !g_link.try_again) return;
  if (event_times_wanted()) {
    if (library_is_loaded("libcuda.so")) attach_events();
    return;
  }
  if (host_is_at_cupti()) return;
  if (is_due()) cupti_attach();
}

void cupti_ask_for_ids() {
  if (!g_attached || g_link.asked_for_ids || !calls_lack_ids()) return;
  g_link.asked_for_ids = true;
  for (const CUpti_ActivityKind kind : kApiKinds) g_link.activities.enable(kind);
  log_line(
      LogLevel::warn,
      "this CUPTI gives no correlation ids without records of API calls: these are on now; GPU "
      "work of before is not joined to its calls");
}

void cupti_yield() {
  if (!g_attached) return;
  give_back_cupti();
  g_attached = false;
  taken_by_host();
  begin_gap();
  if (window_is_open()) say_missing();
}

void cupti_window_opens_without() { g_opened_without = now_ticks(); }

void cupti_window_begins(uint64_t end_ticks) {
  reset_stored_overhead();
  g_gap_ns = g_late_ticks = 0;
  if (g_gap_begin_ns) g_gap_begin_ns = monotonic_ns();
  const uint64_t opened = g_opened_without.exchange(0);
  const uint64_t until = end_ticks ? std::min(end_ticks, g_attached_ticks) : g_attached_ticks;
  if (opened && g_attached && until > opened) g_late_ticks = until - opened;
}

void cupti_leave_out_shed_calls() {
  if (g_attached) disable_shed_callbacks();
}

void cupti_take_back_shed_calls() {
  if (g_attached) enable_callbacks(false);
}

void cupti_flush(bool forced) {
  // Of several subscribers one may not force what is for all.
  forced = forced && !g_link.is_subscriber();
  if (g_attached) g_link.api.ActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

const char* cupti_api_in_use() {
  if (!g_attached) return g_use_text;
  if (!g_link.is_subscriber()) {
    std::snprintf(g_use_text, sizeof g_use_text, "V1");
    return g_use_text;
  }
  char other[96];
  joined_host_name(other, sizeof other);
  if (g_link.first_name[0]) std::snprintf(other, sizeof other, "%s", g_link.first_name);
  std::snprintf(g_use_text, sizeof g_use_text, "V2%s%s", other[0] ? " beside " : "", other);
  return g_use_text;
}

bool cupti_serves_one() { return g_link.serves_one; }

void cupti_refused_host(int error) {
  if (!g_link.v2_used || g_said_refusal.exchange(true)) return;
  log_line(LogLevel::warn,
           "CUPTI refuses the program's own profiler (error %d), perhaps since gpuprof was one of "
           "several subscribers before; with GPUPROF_CUPTI=off it was not",
           error);
}

void cupti_detach() {
  g_link.try_again = false;
  g_gap_begin_ns = 0;
  if (!g_attached) return;
  give_back_cupti();
  g_attached = false;
}

bool cupti_is_attached() { return g_attached; }
uint64_t cupti_attached_ticks() { return g_attached_ticks; }
bool cupti_is_settled() {
  return event_times_wanted() ? event_times_are_ready() : g_attached || g_load_failed;
}
uint32_t cupti_version() { return g_link.loaded ? g_link.context.version : 0; }
bool cupti_is_attaching() { return g_attaching; }
bool cupti_awaits_wait() { return g_attached && graph_order_awaits_wait(); }
uint64_t cupti_attach_ns() { return g_attach_ns; }

const char* gpu_times_missing() {
  if (event_times_wanted() && event_times_missing()[0]) return event_times_missing();
  const bool recorded = g_attached || event_times_wanted();
  if (!g_link.missing[0] && recorded && !activity_on(Activity::kernel)) {
    return "kernels are not among the activities (GPUPROF_ACTIVITIES)";
  }
  if (g_link.missing[0]) return g_link.missing;
  describe_gaps();
  if (!g_gap_text[0] && !recorded && is_in_window()) return "CUPTI was not attached";
  return g_gap_text;
}

uint64_t cupti_overhead_ticks() { return stored_overhead_ticks(); }

GPUPROF_FORGET_IN_CHILD(forget_cupti);
void forget_cupti() {
  forget_cupti_buffers();
  forget_host_cupti();
  forget_cupti_graphs();
  forget_cupti_threads();
  forget_teardown();
  g_attached = g_attaching = g_load_failed = false;
  g_link.activities = CuptiActivities{&g_link.api};
  g_attach_ns = 0;
  g_link.try_again = false;
  g_gap_begin_ns = g_gap_ns = g_late_ticks = 0;
  g_opened_without = 0;
  g_link.missing[0] = '\0';
}

}  // namespace gpuprof
