// SPDX-License-Identifier: Apache-2.0
// The library's constructor, and the functions that programs and NVIDIA's libraries call by name.
#include <dlfcn.h>

#include "collector/collector.h"
#include "collector/libraries.h"
#include "collector/nvtx.h"
#include "preload/export.h"
#include "preload/resolve.h"

namespace gpuprof {

void fill_cudart_slots();
void fill_registration_slots();
void fill_nccl_slots();

namespace {

// Hooks work before this has run. It opens nothing and allocates nothing: most processes that load
// this library never touch a GPU.
[[gnu::constructor]] void on_load() {
  fill_cudart_slots();
  fill_registration_slots();
  fill_nccl_slots();
  set_symbol_lookup(real_dlsym());
  Dl_info self{};
  const bool known = ::dladdr(reinterpret_cast<void*>(&on_load), &self) && self.dli_fname;
  collector_init(kApiRows, kApiCount, known ? self.dli_fname : "");
}

}  // namespace
}  // namespace gpuprof

// The end of a training step: for programs that can be changed, or through ctypes.
extern "C" GPUPROF_EXPORT void gpuprof_step() { gpuprof::step_manual(); }

// Called by NVTX, once per library that uses it. Returns 1 when attached.
extern "C" GPUPROF_EXPORT int InitializeInjectionNvtx2(const void* (*get_table)(unsigned)) {
  return gpuprof::attach_nvtx(get_table);
}
