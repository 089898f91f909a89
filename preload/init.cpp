// SPDX-License-Identifier: Apache-2.0
// The library's constructor, and the functions that programs and NVIDIA's libraries call by name.
#include <dlfcn.h>
#include <sched.h>

#include <atomic>

#include "collector/base/host.h"
#include "collector/base/idle.h"
#include "collector/base/libc.h"
#include "collector/record/collector.h"
#include "collector/sources/nvtx.h"
#include "preload/export.h"
#include "preload/nccl_ranges.h"
#include "preload/objects/elf_symbols.h"
#include "preload/resolve.h"

// The dynamic linker gives the name to the first copy of this library, wherever it is asked for;
// the alias is this copy's.
extern "C" {
extern const char gpuprof_first_copy GPUPROF_EXPORT;
const char gpuprof_first_copy = 0;
extern const char g_this_copy [[gnu::alias("gpuprof_first_copy")]];
}

namespace gpuprof {

void fill_cudart_slots();
void fill_registration_slots();
void fill_driver_slots();
void fill_nccl_slots();
void fill_cupti_slots();

namespace {

static_assert(kApiCount <= kMaxApis);

// For the thread that comes first; the others wait until it is done.
template <typename Action>
[[gnu::always_inline]] inline void do_once(std::atomic<uint32_t>& state, Action action) {
  uint32_t seen = state.load(std::memory_order_acquire);
  if (seen == 2) return;
  if (seen == 0 && state.compare_exchange_strong(seen, 1)) {
    action();
    state.store(2, std::memory_order_release);
    return;
  }
  while (state.load(std::memory_order_acquire) == 1) ::sched_yield();
}

// Few processes ask, and the search through all of this library's symbols is half of what else it
// does when it is loaded. The name lives as long as the library, which is never unloaded.
[[gnu::cold]] const char* find_own_path() {
  Dl_info self{};
  return ::dladdr(&g_this_copy, &self) && self.dli_fname ? self.dli_fname : "";
}

}  // namespace

GPUPROF_IDLE_CODE bool another_copy_works() { return &::gpuprof_first_copy != &g_this_copy; }

void prepare_slots() {
  static std::atomic<uint32_t> state{0};
  do_once(state, [] {
    fill_cudart_slots();
    fill_registration_slots();
    fill_driver_slots();
    fill_nccl_slots();
    fill_cupti_slots();
  });
}

// Opens nothing and allocates nothing: most processes that load this library never touch a GPU.
GPUPROF_IDLE_CODE void prepare_library() {
  do_once(g_host.prepared, [] {
    g_host.rows = kApiRows;
    g_host.row_count = kApiCount;
    g_host.find_lookup = real_dlsym;
    g_host.walk = symbol_in_loaded;
    if (another_copy_works()) return collector_stays_off();
    g_host.own_path = find_own_path;
    collector_init();
  });
}

namespace {
[[gnu::constructor]] GPUPROF_IDLE_CODE void on_load() { prepare_library(); }
}  // namespace

}  // namespace gpuprof

// The end of a training step: for programs that can be changed, or through ctypes.
extern "C" GPUPROF_EXPORT void gpuprof_step() {
  gpuprof::prepare_library();
  gpuprof::step_manual();
}

// Called by NVTX, once per library that uses it. Returns 1 when attached.
extern "C" GPUPROF_EXPORT int InitializeInjectionNvtx2(const void* (*get_table)(unsigned)) {
  gpuprof::prepare_library();
  gpuprof::not_in_driver();  // it may be NVTX that has loaded this library
  return gpuprof::attach_nvtx(get_table, gpuprof::nccl_ranges);
}

// The same for each extension of NVTX that a library uses.
extern "C" GPUPROF_EXPORT int InitializeInjectionNvtxExtension(
    const gpuprof::NvtxExtension* extension) {
  gpuprof::prepare_library();
  return gpuprof::attach_nvtx_extension(extension);
}
