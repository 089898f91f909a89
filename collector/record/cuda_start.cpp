// SPDX-License-Identifier: Apache-2.0
#include "collector/record/cuda_start.h"

#include <atomic>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

std::atomic<bool> g_started{false};  // which stays so
std::atomic<bool> g_runtime_called{false};

void forget_cuda_start() { g_started = g_runtime_called = false; }
GPUPROF_FORGET_IN_CHILD(forget_cuda_start);

}  // namespace

bool driver_has_started() {
  const uint32_t starting = session().driver_thread.load(std::memory_order_acquire);
  if (starting != 0) return starting == current_tid();
  if (g_started.load(std::memory_order_relaxed)) return true;
  if (!library_is_loaded("libcuda.so")) return false;  // waits for no other thread's dlopen
  const auto count =
      reinterpret_cast<int (*)(int*)>(real_symbol(loaded_driver(), "cuDeviceGetCount"));
  int devices = 0;
  const bool started = count && count(&devices) == 0 && devices > 0;
  if (started) g_started.store(true, std::memory_order_relaxed);
  return started;
}

void note_runtime_call() { g_runtime_called.store(true, std::memory_order_relaxed); }

bool cuda_is_in_use() {
  return g_runtime_called.load(std::memory_order_relaxed) || driver_has_started();
}

}  // namespace gpuprof
