// SPDX-License-Identifier: Apache-2.0
#include "preload/injection.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "collector/base/host.h"
#include "collector/base/idle.h"
#include "collector/base/os.h"
#include "collector/python/bridge.h"
#include "collector/record/collector.h"
#include "formats/core/text.h"
#include "preload/export.h"
#include "preload/heap_hooks.h"
#include "preload/objects/got_patch.h"
#include "preload/resolve.h"

extern char** environ;

// Where this library is loaded into an interpreter that runs.
extern "C" [[gnu::weak]] int Py_IsInitialized();

namespace gpuprof {
namespace {

constinit std::atomic<bool> g_injected{false};

// Not by stat(), which glibc before 2.33 did not have as a function.
bool look(const char* path, struct stat& found) {
  return ::syscall(SYS_newfstatat, AT_FDCWD, path, &found, 0) == 0;
}

bool is_own_file(const char* path) {
  struct stat own {
  }, other{};
  return g_host.own_path && look(g_host.own_path(), own) && look(path, other) &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

}  // namespace

bool is_injected() { return g_injected.load(std::memory_order_relaxed); }

namespace {

// The loader's lock is held: no other thread is half through loading something.
void follow_injection() {
  const char* const path = find_in_environment(environ, "CUDA_INJECTION64_PATH");
  const SymbolLookup lookup = path ? real_dlsym() : nullptr;
  if (!lookup) return;
  // What everybody finds under a name that we interpose is ours: preloaded.
  const bool preloaded = lookup(RTLD_DEFAULT, "fexecve") == reinterpret_cast<void*>(&::fexecve);
  if (preloaded || !is_own_file(path) || !wants_injection()) return;
  g_injected = true;
  expect_start_in_driver();  // the hooks that others' calls are led to from here on may come first
  patch_all_while_opened();
}

[[gnu::constructor]] GPUPROF_IDLE_CODE void on_load() {
  prepare_library();
  if (another_copy_works()) return;
  const ErrnoGuard keep_errno;
  g_host.patch_heap = patch_heap_calls;
  follow_injection();
  if (::Py_IsInitialized && ::Py_IsInitialized()) python_watch();
}

}  // namespace
}  // namespace gpuprof

// Called by the driver within cuInit. What it returns decides whether the library stays: it does.
extern "C" GPUPROF_EXPORT int InitializeInjection() {
  gpuprof::prepare_library();
  if (!gpuprof::another_copy_works()) gpuprof::start_in_driver();
  return 1;
}
