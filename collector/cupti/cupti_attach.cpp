// SPDX-License-Identifier: Apache-2.0
// What is asked of CUPTI at a window's begin (which kinds of records, whose clock) and taken back
// at its end.
#include <cstdio>
#include <cstring>
#include <ctime>

#include "collector/base/libraries.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_buffers.h"
#include "collector/cupti/cupti_callback.h"
#include "collector/cupti/cupti_graphs.h"
#include "collector/cupti/cupti_link.h"
#include "collector/cupti/cupti_sharing.h"
#include "collector/cupti/cupti_teardown.h"
#include "collector/record/cuda_start.h"
#include "collector/record/session.h"

namespace gpuprof {

constinit CuptiLink g_link;

namespace {

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
    // Both slow every call of the program's; the first goes on to do so when it is off again
    // (docs/MEASURED.md).
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, Activity::gpu_sync},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, Activity::gpu_sync},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, Activity::kernel},
};

// Whether correlation ids of graph launches are wrong: up to CUDA 13.1 from the second session of a
// process on, whosesoever the first one was (CUPTI release notes, 13.1 update 1).
bool graph_ids_are_wrong() {
  constexpr uint32_t kRight = 130101;
  return g_link.context.version < kRight && (g_link.sessions > 1 || host_was_ever_at_cupti());
}

bool load() {
  const Session& s = session();
  if (std::strcmp(s.config.cupti, "off") == 0) {
    std::snprintf(g_link.missing, sizeof g_link.missing, "GPUPROF_CUPTI=off");
    return false;
  }
  if (!load_cupti(s.config.cupti, g_link.api, g_link.missing, sizeof g_link.missing)) return false;
  g_link.loaded = true;
  return true;
}

// CUDA says which libcupti belongs to it. One that is taken before is so for the process's life,
// and may belong to another.
bool is_known() { return session().config.cupti[0] || library_is_loaded("libcupti.so"); }

// CUPTI starts CUDA, which is the program's to do.
bool is_to_be_asked() {
  g_link.awaits_cuda = !cuda_is_in_use();
  if (!g_link.awaits_cuda) return true;
  g_link.try_again = true;
  std::snprintf(g_link.missing, sizeof g_link.missing, "the program had not started CUDA");
  return false;
}

bool can_be_asked() {
  g_link.awaits_driver = g_link.api.dies_without_driver && !driver_has_started();
  if (!g_link.awaits_driver) return true;
  g_link.try_again = true;
  std::snprintf(g_link.missing, sizeof g_link.missing,
                "CUDA had not started, or has no GPU: CUPTI 13.2 is asked after that");
  return false;
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
  return g_link.activities.timestamp(&now) == CUPTI_SUCCESS ? now : realtime_ns();
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
  const CUpti_TimestampCallbackFunc other = g_link.is_subscriber() ? nullptr : host_clock();
  const CUpti_TimestampCallbackFunc clock = other ? other : default_clock();
  log_line(LogLevel::debug, "CUPTI's clock is %s",
           other                  ? "the program's"
           : clock == realtime_ns ? "CLOCK_REALTIME"
           : clock == raw_ns      ? "CLOCK_MONOTONIC_RAW"
                                  : "another than CLOCK_REALTIME");
  g_link.context.clock.begin(clock, session().clock.ticks_per_ns);
}

void disable_kinds() {
  for (const ActivityRow& row : kActivities) {
    if (activity_on(row.wanted_by)) g_link.activities.disable(row.kind);
  }
  if (g_link.asked_for_ids) {
    for (const CUpti_ActivityKind kind : kApiKinds) g_link.activities.disable(kind);
  }
}

void give_back_subscriber() {
  // First of all callbacks: a call with a correlation id is waited for.
  disable_callbacks();
  disable_kinds();
  detach_graphs(g_link.activities);
  g_link.api.ActivityFlushAll(others_record() ? 0 : CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  leave_subscribers();
}

CUptiResult register_buffers() {
  set_buffer_reader(g_link.api, g_link.context);
  if (g_link.is_subscriber()) {
    read_as_subscriber(g_link.subscriber);
    return g_link.api.v2.ActivityRegisterCallbacks_v2(
        g_link.subscriber, subscriber_buffer_requested, subscriber_buffer_completed);
  }
  records_are_ours(true);
  return g_link.api.ActivityRegisterCallbacks(cupti_buffer_requested, cupti_buffer_completed);
}

// Before anything was recorded.
bool undo_attach(const char* call, CUptiResult result) {
  if (g_link.is_subscriber()) {
    detach_graphs(g_link.activities);
    leave_subscribers();
    g_link.v2_fails = true;
  } else {
    records_are_ours(false);
    unsubscribe();
  }
  return fail(call, result);
}

void enable_event_times() {
  if (!activity_on(Activity::gpu_sync)) return;
  if (g_link.is_subscriber()) {
    g_link.activities.set_attribute(CuptiV2Attribute::cuda_event_device_timestamps, 1);
  } else if (g_link.api.ActivityEnableCudaEventDeviceTimestamps) {
    g_link.api.ActivityEnableCudaEventDeviceTimestamps(1);
  }
}

// At the limit CUPTI would fail, then CUDA, then the program.
bool mappings_are_left() {
  if (vendor_code_may_map()) return true;
  std::snprintf(g_link.missing, sizeof g_link.missing,
                "the process may not have %llu more mappings; raise vm.max_map_count",
                static_cast<unsigned long long>(kMappingsOfVendorCode));
  return false;
}

bool attach() {
  if (!mappings_are_left()) return false;
  if (!g_link.loaded && is_known() && !load()) return false;
  if (!is_to_be_asked() || (!g_link.loaded && !load()) || !can_be_asked()) return false;
  uint32_t& version = g_link.context.version;
  if (version == 0 && g_link.api.GetVersion(&version) != CUPTI_SUCCESS) version = 0;
  if (host_is_at_cupti()) return taken_by_host();
  if (!reserve_cupti_buffers()) {
    std::snprintf(g_link.missing, sizeof g_link.missing,
                  "no address space for CUPTI's buffers (64 MiB); raise RLIMIT_AS (ulimit -v)");
    return false;
  }
  if (!subscribe()) return false;
  // What CUPTI still holds is the program's.
  if (!g_link.is_subscriber() && host_request()) {
    g_link.api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
  choose_clock();
  g_link.context.attach_ticks = now_ticks();
  CUptiResult result = register_buffers();
  if (result != CUPTI_SUCCESS) return undo_attach("cuptiActivityRegisterCallbacks", result);
  ++g_link.sessions;
  const bool ordered = graph_ids_are_wrong();
  attach_graphs(g_link.activities, g_link.subscriber, ordered);
  if (ordered) enable_callbacks(true);
  enable_event_times();
  size_t enabled = 0;
  char refused[64] = "";
  for (const ActivityRow& row : kActivities) {
    if (!activity_on(row.wanted_by)) continue;
    result = g_link.activities.enable(row.kind);
    if (result == CUPTI_SUCCESS) {
      ++enabled;
    } else {
      const size_t used = std::strlen(refused);
      std::snprintf(refused + used, sizeof refused - used, "%s%d", used ? ", " : "",
                    static_cast<int>(row.kind));
    }
  }
  if (g_link.asked_for_ids) {
    for (const CUpti_ActivityKind kind : kApiKinds) g_link.activities.enable(kind);
  }
  if (enabled == 0) {
    undo_attach("cuptiActivityEnable", result);
    if (refused[0]) return false;
    g_link.v2_fails = false;
    std::snprintf(g_link.missing, sizeof g_link.missing,
                  "GPUPROF_ACTIVITIES has none of the GPU's");
    return false;
  }
  graphs_are_recorded();
  enable_callbacks(false);  // last: see give_back()
  if (refused[0]) log_line(LogLevel::warn, "CUPTI refuses activity kinds %s", refused);
  g_link.missing[0] = '\0';
  if (g_link.shared) share_host_subscription(true);
  return true;
}

}  // namespace

bool attach_cupti() {
  const bool failed_before = g_link.v2_fails;
  return attach() || (g_link.v2_fails && !failed_before && attach());
}

void give_back_cupti() {
  if (g_link.is_subscriber()) return give_back_subscriber();
  // First of all callbacks: a call with a correlation id is waited for.
  const bool take_down = teardown_is_possible();
  if (!take_down) unsubscribe();
  disable_kinds();
  detach_graphs(g_link.activities);
  // What is left is ours; after this it would be for whoever comes next.
  g_link.api.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  report_graph_order();
  records_are_ours(false);
  if (take_down) {
    if (tear_down_cupti()) {
      graph_trace_forgotten();
      return take_back_all_buffers();
    }
    unsubscribe();
  }
  if (const auto request = host_request()) {
    g_link.api.ActivityRegisterCallbacks(request, cupti_buffer_completed);
  }
}

}  // namespace gpuprof
