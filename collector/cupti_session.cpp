// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti_session.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collector/collector.h"
#include "collector/cupti_api.h"
#include "collector/cupti_callback.h"
#include "collector/cupti_graphs.h"
#include "collector/cupti_records.h"
#include "collector/log.h"
#include "collector/os.h"
#include "collector/session.h"

namespace gpuprof {
namespace {

// About 1,200 kernel records each. CUPTI keeps one or two per thread or stream in use.
constexpr size_t kBufferBytes = 256 * 1024;
constexpr size_t kPooledBuffers = 64;

CuptiApi g_api{};
bool g_loaded = false;
std::atomic<bool> g_load_failed{false};
std::atomic<bool> g_attached{false};
bool g_clock_registered = false;
CUpti_SubscriberHandle g_subscriber = nullptr;
CuptiRecordContext g_context{};
char g_missing[512] = "";

SpinLock g_pool_lock;
void* g_pool[kPooledBuffers];
size_t g_pooled = 0;

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

void CUPTIAPI on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  void* memory = nullptr;
  {
    const LockGuard guard(g_pool_lock);
    if (g_pooled) memory = g_pool[--g_pooled];
  }
  if (!memory) {
    memory =
        ::mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  }
  *buffer = static_cast<uint8_t*>(memory);
  *size = memory ? kBufferBytes : 0;
  *max_records = 0;
}

// On a thread of CUPTI's, or inside cuptiActivityFlushAll. Holds no lock while it calls CUPTI.
void CUPTIAPI on_buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                                  size_t valid) {
  const BlockedScope blocked;
  const GpuBufferScope gpu_buffer;
  CUpti_Activity* record = nullptr;
  CUptiResult result = valid ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
  while (result == CUPTI_SUCCESS) {
    result = g_api.ActivityGetNextRecord(buffer, valid, &record);
    if (result == CUPTI_SUCCESS) store_activity(g_context, record);
  }
  // A record that was never finished ends what can be read of the buffer.
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) count_loss(Loss::cupti_incomplete);
  size_t dropped = 0;
  if (g_api.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped) {
    count_loss(Loss::cupti_dropped, dropped);
  }
  if (!buffer) return;
  {
    const LockGuard guard(g_pool_lock);
    if (g_pooled < kPooledBuffers) {
      g_pool[g_pooled++] = buffer;
      return;
    }
  }
  ::munmap(buffer, kBufferBytes);
}

uint64_t CUPTIAPI clock_for_cupti() { return now_ticks(); }

// The names of the rows of preload's table tell which callbacks we want: "cudaLaunchKernel_v7000"
// is the callback of row "cudaLaunchKernel".
void enable_callbacks(CUpti_CallbackDomain domain, Library library, uint32_t last_id) {
  for (uint32_t id = 1; id <= last_id; ++id) {
    const char* name = nullptr;
    if (g_api.GetCallbackName(domain, id, &name) != CUPTI_SUCCESS || !name) continue;
    const char* end = std::strrchr(name, '_');
    if (!end || end[1] != 'v') end = name + std::strlen(name);
    const std::string_view base(name, static_cast<size_t>(end - name));
    for (size_t api = 0; api < api_count(); ++api) {
      const ApiRow& row = api_rows()[api];
      if (row.library != library || row.kind == Kind::none || base != row.name) continue;
      if (!activity_on(activity_of(row))) continue;
      set_callback_api(domain, id, static_cast<ApiId>(api));
      g_api.EnableCallback(1, g_subscriber, domain, id);
    }
  }
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

bool register_clock() {
  if (g_clock_registered) return true;
  g_context.times_are_ticks =
      g_api.ActivityRegisterTimestampCallback(clock_for_cupti) == CUPTI_SUCCESS;
  g_clock_registered = g_context.times_are_ticks;
  g_context.anchor = read_anchor();
  g_context.ticks_per_ns = session().clock.ticks_per_ns;
  return true;
}

bool attach() {
  if (!g_loaded && !load()) return false;
  CUptiResult result = g_api.Subscribe(&g_subscriber, on_api_callback, nullptr);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    std::snprintf(g_missing, sizeof g_missing,
                  "another tool in this process uses CUPTI (torch.profiler, Nsight or a debugger)");
    return false;
  }
  if (result != CUPTI_SUCCESS) return fail("cuptiSubscribe", result);
  register_clock();
  g_api.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  result = g_api.ActivityRegisterCallbacks(on_buffer_requested, on_buffer_completed);
  if (result != CUPTI_SUCCESS) {
    g_api.Unsubscribe(g_subscriber);
    return fail("cuptiActivityRegisterCallbacks", result);
  }
  // Callback ids only grow; a newer library than these headers may know some more.
  enable_callbacks(CUPTI_CB_DOMAIN_RUNTIME_API, Library::cudart,
                   CUPTI_RUNTIME_TRACE_CBID_SIZE + 100);
  enable_callbacks(CUPTI_CB_DOMAIN_DRIVER_API, Library::driver, CUPTI_DRIVER_TRACE_CBID_SIZE + 100);
  attach_graphs(g_api, g_subscriber);
  size_t enabled = 0;
  for (const ActivityRow& row : kActivities) {
    if (!activity_on(row.wanted_by)) continue;
    result = g_api.ActivityEnable(row.kind);
    if (result == CUPTI_SUCCESS) {
      ++enabled;
    } else {
      log_line(LogLevel::warn, "CUPTI refuses activity kind %d: %s", static_cast<int>(row.kind),
               text_of(result));
    }
  }
  if (enabled == 0) {
    g_api.Unsubscribe(g_subscriber);
    return fail("cuptiActivityEnable", result);
  }
  g_missing[0] = '\0';
  return true;
}

}  // namespace

bool cupti_attach() {
  if (g_attached) return true;
  if (g_load_failed) return false;
  reset_stored_overhead();
  g_attached = attach();
  if (g_attached) {
    // Handlers run last in, first out: this one comes before those of CUPTI and CUDA, which were
    // registered when they were loaded. After them a flush would find the driver gone.
    ::atexit([] { finish_session("exit"); });
    return true;
  }
  g_load_failed =
      !g_loaded;  // a subscription that another tool holds may be free for the next window
  log_line(LogLevel::warn, "no GPU times: %s", g_missing);
  return false;
}

void cupti_flush(bool forced) {
  if (g_attached) g_api.ActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

void cupti_detach() {
  if (!g_attached) return;
  for (const ActivityRow& row : kActivities) {
    if (activity_on(row.wanted_by)) g_api.ActivityDisable(row.kind);
  }
  detach_graphs(g_api);
  g_api.Unsubscribe(g_subscriber);
  g_attached = false;
}

bool cupti_is_attached() { return g_attached; }
bool cupti_is_settled() { return g_attached || g_load_failed; }
uint32_t cupti_version() { return g_loaded ? g_context.version : 0; }
const char* gpu_times_missing() { return g_missing; }
uint64_t cupti_overhead_ticks() { return stored_overhead_ticks(); }

void forget_cupti() {
  g_pool_lock.unlock();
  g_attached = false;
  g_missing[0] = '\0';
}

}  // namespace gpuprof
