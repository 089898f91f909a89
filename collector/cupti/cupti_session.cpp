// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_session.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
CuptiRecordContext g_context{};
char g_missing[512] = "";

// How the callbacks reach us, and which clock is in force.
bool g_shared = false;  // through a subscription of the program's
std::atomic<bool> g_our_clock{false};
// Another user of CUPTI may end: to be tried again.
bool g_try_again = false;
uint64_t g_last_try_ns = 0;
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

uint64_t CUPTIAPI clock_for_cupti() { return now_ticks(); }

// The names of the rows of preload's table tell which callbacks we want: "cudaLaunchKernel_v7000"
// is the callback of row "cudaLaunchKernel". The driver's have the names of its symbols.
CUptiResult enable_callbacks(CUpti_CallbackDomain domain, Library library, uint32_t last_id) {
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
      const CUptiResult result = g_api.EnableCallback(1, g_subscriber, domain, id);
      if (result != CUPTI_SUCCESS) worst = result;
    }
  }
  return worst;
}

// Both domains. Callback ids only grow; a newer library than these headers may know some more.
void enable_callbacks() {
  const CUptiResult runtime = enable_callbacks(CUPTI_CB_DOMAIN_RUNTIME_API, Library::cudart,
                                               CUPTI_RUNTIME_TRACE_CBID_SIZE + 100);
  const CUptiResult driver = enable_callbacks(CUPTI_CB_DOMAIN_DRIVER_API, Library::driver,
                                              CUPTI_DRIVER_TRACE_CBID_SIZE + 100);
  const CUptiResult worst = runtime != CUPTI_SUCCESS ? runtime : driver;
  if (worst == CUPTI_SUCCESS) return;
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

// Ours, while the program does not use CUPTI. Else what it has set is left: its records must be as
// it expects them, and CUPTI may still hold readings of the clock before.
void choose_clock() {
  if (!g_our_clock && !host_was_ever_at_cupti()) {
    g_our_clock = g_api.ActivityRegisterTimestampCallback(clock_for_cupti) == CUPTI_SUCCESS;
  }
  g_context.times_are_ticks = g_our_clock;
  const CUpti_TimestampCallbackFunc other = host_clock();
  g_context.clock = other ? other : realtime_ns;
  g_context.ticks_per_clock = session().clock.ticks_per_ns;
  start_conversion(g_context);
}

void restore_clock() {
  if (!g_our_clock) return;
  const CUpti_TimestampCallbackFunc other = host_clock();
  g_api.ActivityRegisterTimestampCallback(other ? other : realtime_ns);
  g_our_clock = false;
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

bool subscribe() {
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
  return result == CUPTI_SUCCESS || fail("cuptiSubscribe", result);
}

void unsubscribe() {
  if (!g_shared) {
    g_api.Unsubscribe(g_subscriber);
    return;
  }
  share_host_subscription(false);
  constexpr struct {
    CUpti_CallbackDomain domain;
    uint32_t last_id;
  } kDomains[] = {{CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE + 100},
                  {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE + 100},
                  {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_SIZE}};
  for (const auto& row : kDomains) {
    for (uint32_t id = 1; id <= row.last_id; ++id) {
      if (callback_is_ours(row.domain, id) && !host_wants_callback(row.domain, id)) {
        g_api.EnableCallback(0, g_subscriber, row.domain, id);
      }
    }
  }
}

// cuptiFinalize is never called: it is for the whole process, whoever else may use CUPTI, crashed
// with CUDA graphs before 12.6, and with all kinds and callbacks off nothing is left to take down.
void give_back() {
  // First of all callbacks: a call with a correlation id is waited for.
  unsubscribe();
  for (const ActivityRow& row : kActivities) {
    if (activity_on(row.wanted_by)) g_api.ActivityDisable(row.kind);
  }
  detach_graphs(g_api);
  // What is left is ours; after this it would be for whoever comes next.
  g_api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  records_are_ours(false);
  if (const auto request = host_request()) {
    g_api.ActivityRegisterCallbacks(request, cupti_buffer_completed);
  }
  g_attached = false;
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
  choose_clock();
  // What CUPTI still holds is the program's.
  if (host_request()) g_api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  set_buffer_reader(g_api, g_context);
  records_are_ours(true);
  CUptiResult result =
      g_api.ActivityRegisterCallbacks(cupti_buffer_requested, cupti_buffer_completed);
  if (result != CUPTI_SUCCESS) {
    records_are_ours(false);
    unsubscribe();
    return fail("cuptiActivityRegisterCallbacks", result);
  }
  attach_graphs(g_api, g_subscriber);
  size_t enabled = 0;
  char refused[64] = "";
  for (const ActivityRow& row : kActivities) {
    if (!activity_on(row.wanted_by)) continue;
    result = g_api.ActivityEnable(row.kind);
    if (result == CUPTI_SUCCESS) {
      ++enabled;
    } else {
      const size_t used = std::strlen(refused);
      std::snprintf(refused + used, sizeof refused - used, "%s%d", used ? ", " : "",
                    static_cast<int>(row.kind));
    }
  }
  if (enabled == 0) {
    records_are_ours(false);
    unsubscribe();
    if (refused[0]) return fail("cuptiActivityEnable", result);
    std::snprintf(g_missing, sizeof g_missing, "GPUPROF_ACTIVITIES has none of the GPU's");
    return false;
  }
  enable_callbacks();  // last: see give_back()
  if (refused[0]) log_line(LogLevel::warn, "CUPTI refuses activity kinds %s", refused);
  g_missing[0] = '\0';
  if (g_shared) share_host_subscription(true);
  return true;
}

void begin_gap() {
  if (g_gap_begin_ns == 0) g_gap_begin_ns = monotonic_ns();
}

void end_gap() {
  if (g_gap_begin_ns) g_gap_ns += monotonic_ns() - g_gap_begin_ns;
  g_gap_begin_ns = 0;
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
  {
    const CuptiThreadsWatch watch;
    g_attached = attach();
  }
  if (g_attached) {
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
  if (monotonic_ns() - g_last_try_ns < kRetryNs || !cupti_attach()) return;
  if (window_is_open()) cupti_settle_graphs();  // there was no warm-up to ask in
}

void cupti_yield() {
  if (g_attached) {
    give_back();
    taken_by_host();
    begin_gap();
    if (window_is_open()) say_missing();
  }
  restore_clock();
}

void cupti_window_begins() {
  reset_stored_overhead();
  g_gap_ns = 0;
  if (g_gap_begin_ns) g_gap_begin_ns = monotonic_ns();
}

void cupti_settle_graphs() {
  if (g_attached) settle_graphs(g_api);
}

bool cupti_graphs_are_open() { return graphs_are_open(); }

void cupti_flush(bool forced) {
  if (g_attached) g_api.ActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

void cupti_detach() {
  g_try_again = false;
  g_gap_begin_ns = 0;
  if (g_attached) give_back();
}

bool cupti_is_attached() { return g_attached; }
bool cupti_is_settled() { return g_attached || g_load_failed; }
uint32_t cupti_version() { return g_loaded ? g_context.version : 0; }
bool cupti_has_our_clock() { return g_our_clock; }

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

void forget_cupti() {
  forget_cupti_buffers();
  forget_host_cupti();
  forget_cupti_threads();
  g_attached = false;
  g_try_again = false;
  g_gap_begin_ns = g_gap_ns = 0;
  g_missing[0] = '\0';
}

}  // namespace gpuprof
