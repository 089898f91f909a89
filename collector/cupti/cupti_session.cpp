// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_session.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "collector/base/fork.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_api.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_callback.h"
#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_host.h"
#include "collector/cupti/cupti_records.h"
#include "collector/cupti/cupti_threads.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

CuptiApi g_api{};
bool g_loaded = false;
std::atomic<bool> g_load_failed{false};
std::atomic<bool> g_attached{false};
CUpti_SubscriberHandle g_subscriber = nullptr;
// The functions of our subscriber alone (V2), while one of several; else those of the process (V1).
CuptiActivities g_activities{&g_api};
bool g_v2_fails = false;  // in this process: not tried again
std::atomic<bool> g_v2_used{false};
std::atomic<bool> g_said_refusal{false};
char g_first_name[64] = "";  // of the subscriber that was there before ours
char g_use_text[200] = "";
bool g_said_use = false;
bool g_refused_several = false;         // by the newest attempt to be one of several
std::atomic<bool> g_serves_one{false};  // and nobody else was there
CuptiRecordContext g_context{};
char g_missing[512] = "";

// How the callbacks reach us.
bool g_shared = false;  // through a subscription of the program's
// Another user of CUPTI may end: to be tried again.
bool g_try_again = false;
uint64_t g_last_try_ns = 0;
std::atomic<bool> g_attaching{false};
std::atomic<uint64_t> g_attach_ns{0};
uint32_t g_sessions = 0;  // so far, with this one
constexpr uint64_t kRetryNs = 200000000;
// Times without CUPTI in the window, and because of whom.
uint64_t g_gap_begin_ns = 0, g_gap_ns = 0;
char g_gap_name[96] = "";
char g_gap_text[256] = "";
char g_said[sizeof g_missing] = "";

struct ActivityRow {
  CUpti_ActivityKind kind;
  Activity wanted_by;
};
constexpr ActivityRow kActivities[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, Activity::kernel},
    {CUPTI_ACTIVITY_KIND_MEMCPY, Activity::memcpy},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, Activity::memcpy},
    {CUPTI_ACTIVITY_KIND_MEMSET, Activity::memset},
    {CUPTI_ACTIVITY_KIND_MEMORY2, Activity::alloc},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, Activity::sync},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, Activity::sync},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, Activity::kernel},
};

// "Correlation IDs are generated only when CUDA API activity kinds [...] are enabled" (CUPTI guide,
// 2.3.4). Profilers that join by callbacks have them without; so this is asked for where they lack.
constexpr CUpti_ActivityKind kApiKinds[] = {CUPTI_ACTIVITY_KIND_RUNTIME,
                                            CUPTI_ACTIVITY_KIND_DRIVER};
bool g_asked_for_ids = false;

bool is_subscriber() { return g_activities.subscriber != nullptr; }

const char* text_of(CUptiResult result) {
  const char* text = nullptr;
  if (g_api.GetResultString(result, &text) != CUPTI_SUCCESS || !text) text = "unknown error";
  return text;
}

bool fail(const char* call, CUptiResult result) {
  std::snprintf(g_missing, sizeof g_missing, "%s: %s (%d)", call, text_of(result),
                static_cast<int>(result));
  return false;
}

// Whether correlation ids of graph launches are wrong: up to CUDA 13.1 from the second session of a
// process on, whosesoever the first one was (CUPTI release notes, 13.1 update 1).
bool graph_ids_are_wrong() {
  constexpr uint32_t kRight = 130101;
  return g_context.version < kRight && (g_sessions > 1 || host_was_ever_at_cupti());
}

// The names of the rows of preload's table tell which callbacks we want: "cudaLaunchKernel_v7000"
// is the callback of row "cudaLaunchKernel". The driver's have the names of its symbols.
// `order`: those that the order of graph launches hangs on, else all.
CUptiResult enable_callbacks(CUpti_CallbackDomain domain, Library library, uint32_t last_id,
                             bool order) {
  CUptiResult worst = CUPTI_SUCCESS;
  for (uint32_t id = 1; id <= last_id; ++id) {
    const char* name = nullptr;
    if (g_api.GetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name) continue;
    const char* end = std::strrchr(name, '_');
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API || !end || end[1] != 'v')
      end = name + std::strlen(name);
    const std::string_view base(name, static_cast<size_t>(end - name));
    for (size_t api = 0; api < api_count(); ++api) {
      const ApiRow& row = api_rows()[api];
      if (row.library != library || row.kind == Kind::none || base != row.name) continue;
      if (!activity_on(activity_of(row))) continue;
      set_callback_api(domain, id, static_cast<ApiId>(api));
      if (order && !orders_graphs(domain, id)) continue;
      const CUptiResult result = g_api.EnableCallback(1, g_subscriber, domain, id);
      if (result != CUPTI_SUCCESS) worst = result;
    }
  }
  return worst;
}

// Both domains. Callback ids only grow; a newer library than these headers may know some more.
void enable_callbacks(bool order) {
  const CUptiResult runtime = enable_callbacks(CUPTI_CB_DOMAIN_RUNTIME_API, Library::cudart,
                                               CUPTI_RUNTIME_TRACE_CBID_SIZE + 100, order);
  const CUptiResult driver = enable_callbacks(CUPTI_CB_DOMAIN_DRIVER_API, Library::driver,
                                              CUPTI_DRIVER_TRACE_CBID_SIZE + 100, order);
  const CUptiResult worst = runtime != CUPTI_SUCCESS ? runtime : driver;
  if (worst == CUPTI_SUCCESS || order) return;
  log_line(LogLevel::warn,
           "CUPTI refuses callbacks (cuptiEnableCallback: %s): GPU work is not joined to its calls",
           text_of(worst));
}

bool load() {
  const Session& s = session();
  if (std::strcmp(s.config.cupti, "off") == 0) {
    std::snprintf(g_missing, sizeof g_missing, "GPUPROF_CUPTI=off");
    return false;
  }
  if (!load_cupti(s.config.cupti, g_api, g_missing, sizeof g_missing)) return false;
  if (g_api.GetVersion(&g_context.version) != CUPTI_SUCCESS) g_context.version = 0;
  g_loaded = true;
  return true;
}

uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}
uint64_t CUPTIAPI realtime_ns() { return clock_ns(CLOCK_REALTIME); }
uint64_t CUPTIAPI raw_ns() { return clock_ns(CLOCK_MONOTONIC_RAW); }
uint64_t CUPTIAPI ask_cupti() {
  uint64_t now = 0;
  return g_activities.timestamp(&now) == CUPTI_SUCCESS ? now : realtime_ns();
}

// CUPTI's own: CLOCK_REALTIME, in WSL CLOCK_MONOTONIC_RAW, read without a call into CUPTI; whatever
// else it may be, by one.
CUpti_TimestampCallbackFunc default_clock() {
  constexpr uint64_t kNearNs = 10000000;
  for (const auto clock : {realtime_ns, raw_ns}) {
    const uint64_t before = clock(), theirs = ask_cupti(), after = clock();
    if (theirs + kNearNs >= before && theirs <= after + kNearNs) return clock;
  }
  return ask_cupti;
}

// What the program has registered, or CUPTI's own; none is ever registered (cupti_clock.h). With
// several subscribers no clock can be.
void choose_clock() {
  const CUpti_TimestampCallbackFunc other = is_subscriber() ? nullptr : host_clock();
  g_context.clock.begin(other ? other : default_clock(), session().clock.ticks_per_ns);
}

bool taken_by(const char* name) {
  g_try_again = true;
  std::snprintf(g_gap_name, sizeof g_gap_name, "%s", name);
  std::snprintf(g_missing, sizeof g_missing, "%s uses CUPTI, which has room for one user", name);
  return false;
}

bool taken_by_host() {
  char name[96];
  host_cupti_name(name, sizeof name);
  return taken_by(name);
}

bool refused_v2(const char* call, CUptiResult result) {
  log_line(LogLevel::debug, "%s: %s (%d): CUPTI's functions for one user are used", call,
           text_of(result), static_cast<int>(result));
  return false;
}

// As one of several subscribers (CUPTI 13.3 and drivers from R610 on). Its functions cannot be
// mixed with the older ones: where the program has used those, so do we.
bool join_subscribers() {
  if (!g_api.has_v2 || g_v2_fails || host_has_used_v1()) return false;
  g_first_name[0] = '\0';
  g_refused_several = false;
  CuptiV2SubscriberParams params{};
  params.structSize = sizeof params;
  params.subscriberName = "gpuprof";
  params.oldSubscriberName = g_first_name;
  params.oldSubscriberSize = sizeof g_first_name;
  params.allowMultipleSubscribers = 1;
  CUpti_SubscriberHandle handle = nullptr;
  CUptiResult result = g_api.Subscribe_v2(&handle, on_callback_beside_others, nullptr,
                                          reinterpret_cast<CUpti_SubscriberParams*>(&params));
  g_first_name[sizeof g_first_name - 1] = '\0';
  g_refused_several = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (result != CUPTI_SUCCESS) return refused_v2("cuptiSubscribe_v2", result);
  const CuptiActivities joined{&g_api, handle};
  uint8_t several = 0;
  result = joined.attribute(CuptiV2Attribute::multiple_subscriber_state, &several);
  uint64_t now = 0;
  if (result == CUPTI_SUCCESS && several != 1) result = CUPTI_ERROR_NOT_SUPPORTED;
  if (result == CUPTI_SUCCESS) result = joined.timestamp(&now);
  if (result != CUPTI_SUCCESS) {
    g_api.Unsubscribe(handle);
    g_v2_fails = true;
    return refused_v2("as one of several subscribers", result);
  }
  if (std::strstr(g_first_name, "gpuprof")) g_first_name[0] = '\0';
  g_activities = joined;
  g_subscriber = handle;
  g_shared = false;
  g_v2_used = true;
  return true;
}

bool subscribe() {
  g_activities = {&g_api};
  if (join_subscribers()) return true;
  if (CUpti_SubscriberHandle const other = host_subscription()) {
    g_subscriber = other;
    g_shared = true;
    return true;
  }
  g_shared = false;
  char other[64] = "";
  CUptiResult result = CUPTI_ERROR_UNKNOWN;
  if (g_api.Subscribe_v2) {
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "gpuprof";
    params.oldSubscriberName = other;
    params.oldSubscriberSize = sizeof other;
    result = g_api.Subscribe_v2(&g_subscriber, on_api_callback, nullptr, &params);
  }
  if (result != CUPTI_SUCCESS && result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    result = g_api.Subscribe(&g_subscriber, on_api_callback, nullptr);
  }
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    other[sizeof other - 1] = '\0';
    return taken_by(other[0] ? other : "another tool (torch.profiler, Nsight or a debugger)");
  }
  g_serves_one = result == CUPTI_SUCCESS && g_refused_several;
  return result == CUPTI_SUCCESS || fail("cuptiSubscribe", result);
}

void disable_callbacks() {
  constexpr struct {
    CUpti_CallbackDomain domain;
    uint32_t last_id;
  } kDomains[] = {{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE + 100},
                  {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE + 100},
                  {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_SIZE}};
  for (const auto& row : kDomains) {
    for (uint32_t id = 1; id <= row.last_id; ++id) {
      if (!callback_is_ours(row.domain, id)) continue;
      if (g_shared && host_wants_callback(row.domain, id)) continue;
      g_api.EnableCallback(0, g_subscriber, row.domain, id);
    }
  }
}

void unsubscribe() {
  if (!g_shared) {
    g_api.Unsubscribe(g_subscriber);
    return;
  }
  share_host_subscription(false);
  disable_callbacks();
}

// Our subscriber goes, and with it what CUPTI still holds for it.
void leave_subscribers() {
  g_api.Unsubscribe(g_subscriber);
  read_as_subscriber(nullptr);
  take_back_subscriber_buffers();
  g_activities = {&g_api};
}

// Whether any other subscriber records, once we do not. A flush is for all of them, and a forced
// one would take the times from what they have not had yet.
bool others_record() {
  uint32_t kinds = 0;
  return g_api.v2.ActivityGetEnabledKinds(nullptr, nullptr, nullptr, &kinds) != CUPTI_SUCCESS ||
         kinds != 0;
}

void disable_kinds() {
  for (const ActivityRow& row : kActivities) {
    if (activity_on(row.wanted_by)) g_activities.disable(row.kind);
  }
  if (g_asked_for_ids) {
    for (const CUpti_ActivityKind kind : kApiKinds) g_activities.disable(kind);
  }
}

void give_back_subscriber() {
  // First of all callbacks: a call with a correlation id is waited for.
  disable_callbacks();
  disable_kinds();
  detach_graphs(g_activities);
  g_api.ActivityFlushAll(others_record() ? 0 : CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  leave_subscribers();
  g_attached = false;
}

// cuptiFinalize is never called: it is for the whole process, whoever else may use CUPTI, crashed
// with CUDA graphs before 12.6, and with all kinds and callbacks off nothing is left to take down.
void give_back() {
  if (is_subscriber()) return give_back_subscriber();
  // First of all callbacks: a call with a correlation id is waited for.
  unsubscribe();
  disable_kinds();
  detach_graphs(g_activities);
  // What is left is ours; after this it would be for whoever comes next.
  g_api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  report_graph_order();
  records_are_ours(false);
  if (const auto request = host_request()) {
    g_api.ActivityRegisterCallbacks(request, cupti_buffer_completed);
  }
  g_attached = false;
}

CUptiResult register_buffers() {
  set_buffer_reader(g_api, g_context);
  if (is_subscriber()) {
    read_as_subscriber(g_subscriber);
    return g_api.v2.ActivityRegisterCallbacks_v2(g_subscriber, subscriber_buffer_requested,
                                                 subscriber_buffer_completed);
  }
  records_are_ours(true);
  return g_api.ActivityRegisterCallbacks(cupti_buffer_requested, cupti_buffer_completed);
}

// Before anything was recorded.
bool undo_attach(const char* call, CUptiResult result) {
  if (is_subscriber()) {
    detach_graphs(g_activities);
    leave_subscribers();
    g_v2_fails = true;
  } else {
    records_are_ours(false);
    unsubscribe();
  }
  return fail(call, result);
}

void enable_event_times() {
  if (!activity_on(Activity::sync)) return;
  if (is_subscriber()) {
    g_activities.set_attribute(CuptiV2Attribute::cuda_event_device_timestamps, 1);
  } else if (g_api.ActivityEnableCudaEventDeviceTimestamps) {
    g_api.ActivityEnableCudaEventDeviceTimestamps(1);
  }
}

bool attach() {
  if (!g_loaded && !load()) return false;
  if (host_is_at_cupti()) return taken_by_host();
  if (!reserve_cupti_buffers()) {
    std::snprintf(g_missing, sizeof g_missing,
                  "no address space for CUPTI's buffers (64 MiB); raise RLIMIT_AS (ulimit -v)");
    return false;
  }
  if (!subscribe()) return false;
  // What CUPTI still holds is the program's.
  if (!is_subscriber() && host_request()) {
    g_api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
  choose_clock();
  g_context.attach_ticks = now_ticks();
  CUptiResult result = register_buffers();
  if (result != CUPTI_SUCCESS) return undo_attach("cuptiActivityRegisterCallbacks", result);
  ++g_sessions;
  const bool ordered = graph_ids_are_wrong();
  attach_graphs(g_activities, g_subscriber, ordered);
  if (ordered) enable_callbacks(true);
  enable_event_times();
  size_t enabled = 0;
  char refused[64] = "";
  for (const ActivityRow& row : kActivities) {
    if (!activity_on(row.wanted_by)) continue;
    result = g_activities.enable(row.kind);
    if (result == CUPTI_SUCCESS) {
      ++enabled;
    } else {
      const size_t used = std::strlen(refused);
      std::snprintf(refused + used, sizeof refused - used, "%s%d", used ? ", " : "",
                    static_cast<int>(row.kind));
    }
  }
  if (g_asked_for_ids) {
    for (const CUpti_ActivityKind kind : kApiKinds) g_activities.enable(kind);
  }
  if (enabled == 0) {
    undo_attach("cuptiActivityEnable", result);
    if (refused[0]) return false;
    g_v2_fails = false;
    std::snprintf(g_missing, sizeof g_missing, "GPUPROF_ACTIVITIES has none of the GPU's");
    return false;
  }
  graphs_are_recorded();
  enable_callbacks(false);  // last: see give_back()
  if (refused[0]) log_line(LogLevel::warn, "CUPTI refuses activity kinds %s", refused);
  g_missing[0] = '\0';
  if (g_shared) share_host_subscription(true);
  return true;
}

// Where functions of V2 are there and fail, those of V1 are tried in the same attempt.
bool attach_either_way() {
  const bool failed_before = g_v2_fails;
  return attach() || (g_v2_fails && !failed_before && attach());
}

void begin_gap() {
  if (g_gap_begin_ns == 0) g_gap_begin_ns = monotonic_ns();
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
  const bool beside = is_subscriber() && g_first_name[0] && !std::exchange(g_said_use, true);
  log_line(beside ? LogLevel::info : LogLevel::debug, "CUPTI's functions in use: %s",
           cupti_api_in_use());
}

// Once for each reason: it is tried again several times a second.
void say_missing() {
  if (std::strcmp(g_said, g_missing) == 0) return;
  std::snprintf(g_said, sizeof g_said, "%s", g_missing);
  log_line(LogLevel::warn, "no GPU times: %s", g_missing);
}

}  // namespace

bool cupti_attach() {
  if (g_attached) return true;
  if (g_load_failed) return false;
  g_try_again = false;
  g_last_try_ns = monotonic_ns();
  g_attaching = true;
  {
    const CuptiThreadsWatch watch;
    g_attached = attach_either_way();
  }
  g_attaching = false;
  if (g_attached) {
    note_attach(monotonic_ns() - g_last_try_ns);
    say_use();
    end_gap();
    g_said[0] = '\0';
    // Handlers run last in, first out: this one comes before those of CUPTI and CUDA, which were
    // registered when they were loaded. After them a flush would find the driver gone.
    ::atexit([] { finish_session("exit"); });
    return true;
  }
  g_load_failed =
      !g_loaded;  // a subscription that another tool holds may be free for the next window
  if (g_try_again) begin_gap();
  say_missing();
  return false;
}

void cupti_try_again() {
  if (g_attached || !g_try_again || host_is_at_cupti()) return;
  if (monotonic_ns() - g_last_try_ns >= kRetryNs) cupti_attach();
}

void cupti_ask_for_ids() {
  if (!g_attached || g_asked_for_ids || !calls_lack_ids()) return;
  g_asked_for_ids = true;
  for (const CUpti_ActivityKind kind : kApiKinds) g_activities.enable(kind);
  log_line(
      LogLevel::warn,
      "this CUPTI gives no correlation ids without records of API calls: these are on now; GPU "
      "work of before is not joined to its calls");
}

void cupti_yield() {
  if (!g_attached) return;
  give_back();
  taken_by_host();
  begin_gap();
  if (window_is_open()) say_missing();
}

void cupti_window_begins() {
  reset_stored_overhead();
  g_gap_ns = 0;
  if (g_gap_begin_ns) g_gap_begin_ns = monotonic_ns();
}

void cupti_flush(bool forced) {
  // Of several subscribers one may not force what is for all.
  forced = forced && !is_subscriber();
  if (g_attached) g_api.ActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

const char* cupti_api_in_use() {
  if (!g_attached) return g_use_text;
  if (!is_subscriber()) {
    std::snprintf(g_use_text, sizeof g_use_text, "V1");
    return g_use_text;
  }
  char other[96];
  joined_host_name(other, sizeof other);
  if (g_first_name[0]) std::snprintf(other, sizeof other, "%s", g_first_name);
  std::snprintf(g_use_text, sizeof g_use_text, "V2%s%s", other[0] ? " beside " : "", other);
  return g_use_text;
}

bool cupti_serves_one() { return g_serves_one; }

void cupti_refused_host(int error) {
  if (!g_v2_used || g_said_refusal.exchange(true)) return;
  log_line(LogLevel::warn,
           "CUPTI refuses the program's own profiler (error %d), perhaps since gpuprof was one of "
           "several subscribers before; with GPUPROF_CUPTI=off it was not",
           error);
}

void cupti_detach() {
  g_try_again = false;
  g_gap_begin_ns = 0;
  if (g_attached) give_back();
}

bool cupti_is_attached() { return g_attached; }
bool cupti_is_settled() { return g_attached || g_load_failed; }
uint32_t cupti_version() { return g_loaded ? g_context.version : 0; }
bool cupti_is_attaching() { return g_attaching; }
bool cupti_awaits_wait() { return g_attached && graph_order_awaits_wait(); }
uint64_t cupti_attach_ns() { return g_attach_ns; }

const char* gpu_times_missing() {
  if (!g_missing[0] && g_attached && !activity_on(Activity::kernel)) {
    return "kernels are not among the activities (GPUPROF_ACTIVITIES)";
  }
  if (g_missing[0] || g_gap_ns == 0) return g_missing;
  std::snprintf(g_gap_text, sizeof g_gap_text, "for %.3f s of the window, while %s used CUPTI",
                static_cast<double>(g_gap_ns) / 1e9, g_gap_name);
  return g_gap_text;
}

uint64_t cupti_overhead_ticks() { return stored_overhead_ticks(); }

GPUPROF_FORGET_IN_CHILD(forget_cupti);
void forget_cupti() {
  forget_cupti_buffers();
  forget_host_cupti();
  forget_cupti_graphs();
  forget_cupti_threads();
  g_attached = g_attaching = false;
  g_activities = {&g_api};
  g_attach_ns = 0;
  g_try_again = false;
  g_gap_begin_ns = g_gap_ns = 0;
  g_missing[0] = '\0';
}

}  // namespace gpuprof
