// SPDX-License-Identifier: Apache-2.0
// The library's constructor, and the functions that programs and NVIDIA's libraries call by name.
#include <dlfcn.h>
#include <sched.h>

#include <atomic>

#include "collector/base/libraries.h"
#include "collector/record/collector.h"
#include "collector/sources/nvtx.h"
#include "preload/elf_symbols.h"
#include "preload/export.h"
#include "preload/resolve.h"

extern "C" GPUPROF_EXPORT void gpuprof_step();

namespace gpuprof {

void fill_cudart_slots();
void fill_registration_slots();
void fill_driver_slots();
void fill_nccl_slots();
void fill_cupti_slots();

bool another_copy_works() {
  const DlsymFunction lookup = real_dlsym();
  void* const first = lookup ? lookup(RTLD_DEFAULT, "gpuprof_step") : nullptr;
  return first && first != reinterpret_cast<void*>(&::gpuprof_step);
}

// Opens nothing and allocates nothing: most processes that load this library never touch a GPU.
void prepare_library() {
  static std::atomic<uint32_t> state{0};  // 1: someone is at it, 2: done
  uint32_t seen = 0;
  if (!state.compare_exchange_strong(seen, 1)) {
    while (state.load(std::memory_order_acquire) == 1) ::sched_yield();
    return;
  }
  fill_cudart_slots();
  fill_registration_slots();
  fill_driver_slots();
  fill_nccl_slots();
  fill_cupti_slots();
  set_symbol_lookup(real_dlsym(), symbol_in_loaded);
  Dl_info self{};
  const bool known = ::dladdr(reinterpret_cast<void*>(&prepare_library), &self) && self.dli_fname;
  if (another_copy_works()) {
    collector_stays_off();
  } else {
    collector_init(kApiRows, kApiCount, known ? self.dli_fname : "");
  }
  state.store(2, std::memory_order_release);
}

namespace {
[[gnu::constructor]] void on_load() { prepare_library(); }
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
  return gpuprof::attach_nvtx(get_table);
}
