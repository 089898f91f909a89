// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/start.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/simcuda/core/settings.h"

namespace gpuprof::simcuda {
namespace {

std::atomic<bool> g_started{false};
thread_local bool t_starts = false;

std::recursive_mutex& lock() {
  static std::recursive_mutex& mutex = *new std::recursive_mutex();
  return mutex;
}

void load_injection() {
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  std::this_thread::sleep_for(std::chrono::milliseconds(settings().injection_ms));
  void* const entry = library == nullptr ? nullptr : ::dlsym(library, "InitializeInjection");
  if (entry == nullptr) {
    std::fprintf(stderr, "simcuda: CUDA_INJECTION64_PATH=%s: %s\n", path, ::dlerror());
  } else if (reinterpret_cast<int (*)()>(entry)() == 0) {
    ::dlclose(library);
  }
}

}  // namespace

void start_driver() {
  if (g_started.load(std::memory_order_acquire) || settings().no_driver) return;
  static bool begun = false;
  const std::lock_guard<std::recursive_mutex> guard(lock());
  if (begun) return;
  begun = true;
  t_starts = true;
  load_injection();
  t_starts = false;
  g_started.store(true, std::memory_order_release);
}

bool driver_is_started() { return t_starts || g_started.load(std::memory_order_acquire); }

void wait_for_driver() { const std::lock_guard<std::recursive_mutex> guard(lock()); }

}  // namespace gpuprof::simcuda
