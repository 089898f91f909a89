// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/event_driver.h"

#include <atomic>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

Mutex g_lock;
EventDriver g_driver{};
std::atomic<bool> g_found{false};

template <typename Function>
bool find(void* library, const char* name, Function& out, const char** lacks) {
  out = reinterpret_cast<Function>(real_symbol(library, name));
  if (out) return true;
  if (lacks) *lacks = name;
  return false;
}

bool find_all(void* library, EventDriver& d, const char** lacks) {
  return find(library, "cuStreamIsCapturing", d.is_capturing[0], lacks) &&
         find(library, "cuStreamIsCapturing_ptsz", d.is_capturing[1], lacks) &&
         find(library, "cuEventRecord", d.record[0], lacks) &&
         find(library, "cuEventRecord_ptsz", d.record[1], lacks) &&
         find(library, "cuStreamGetId", d.stream_id[0], lacks) &&
         find(library, "cuStreamGetId_ptsz", d.stream_id[1], lacks) &&
         find(library, "cuEventCreate", d.create, lacks) &&
         find(library, "cuEventDestroy_v2", d.destroy, lacks) &&
         find(library, "cuEventQuery", d.query, lacks) &&
         find(library, "cuEventElapsedTime", d.elapsed, lacks) &&
         find(library, "cuStreamCreate", d.create_stream, lacks) &&
         find(library, "cuStreamDestroy_v2", d.destroy_stream, lacks) &&
         find(library, "cuCtxGetCurrent", d.get_context, lacks) &&
         find(library, "cuCtxSetCurrent", d.set_context, lacks) &&
         find(library, "cuCtxGetId", d.context_id, lacks) &&
         find(library, "cuCtxGetDevice", d.context_device, lacks) &&
         find(library, "cuThreadExchangeStreamCaptureMode", d.exchange_mode, lacks) &&
         find(library, "cuStreamGetCtx", d.stream_context, lacks) &&
         find(library, "cuDevicePrimaryCtxGetState", d.primary_state, lacks) &&
         find(library, "cuDevicePrimaryCtxRetain", d.primary_retain, lacks) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", d.primary_release, lacks);
}

}  // namespace

const EventDriver* event_driver(const char** lacks) {
  if (g_found.load(std::memory_order_acquire)) return &g_driver;
  void* const library = loaded_driver();
  if (!library) {
    if (lacks) *lacks = "libcuda.so.1";
    return nullptr;
  }
  EventDriver found{};
  if (!find_all(library, found, lacks)) return nullptr;
  (void)find(loaded_cudart(), "cudaGetDevice", found.runtime_device, nullptr);
  const LockGuard guard(g_lock);
  if (!g_found.load(std::memory_order_relaxed)) g_driver = found;
  g_found.store(true, std::memory_order_release);
  return &g_driver;
}

GPUPROF_FORGET_IN_CHILD(forget_event_driver);
void forget_event_driver() {
  g_lock.unlock();
  g_found = false;
  g_driver = {};
}

}  // namespace gpuprof
