// SPDX-License-Identifier: Apache-2.0
// How the runtime learns kernels from the program, and how we learn their names without CUPTI.
// These run while libraries are loaded, mostly before main and before our constructor.
#include <cuda_runtime_api.h>

#include <atomic>

#include "preload/export.h"
#include "preload/hook.h"
#include "preload/objects/copies.h"

// Declared by NVIDIA only for its compiler (crt/host_runtime.h).
extern "C" {
GPUPROF_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
GPUPROF_EXPORT void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*,
                                           uint3*, dim3*, dim3*, int*);
GPUPROF_EXPORT void __cudaUnregisterFatBinary(void**);
}

using gpuprof::Api;
using gpuprof::Hook;

extern "C" cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  const cudaError_t result =
      Hook<Api::__cudaGetKernel, decltype(__cudaGetKernel)>::call_real(kernel, host_function);
#ifndef GPUPROF_NOP
  if (result == cudaSuccess && kernel) gpuprof::register_kernel(*kernel, host_function);
#endif
  return result;
}

#ifndef GPUPROF_NOP
namespace {

using Register = decltype(&__cudaRegisterFunction);

// That of the runtime that the registering object is linked to, if hooks call another: a module's
// handle is its runtime's own.
Register own_registration(void** module, const void* host_function) {
  static constinit std::atomic<void**> last{nullptr};  // of a runtime that hooks call
  if (last.load(std::memory_order_relaxed) == module) return nullptr;
  void* const own = gpuprof::own_copys_function(gpuprof::Library::cudart, host_function,
                                                "__cudaRegisterFunction");
  if (!own) last.store(module, std::memory_order_relaxed);
  return reinterpret_cast<Register>(own);
}

}  // namespace
#endif

extern "C" void __cudaRegisterFunction(void** module, const char* host_function,
                                       char* device_function, const char* device_name,
                                       int thread_limit, uint3* thread_id, uint3* block_id,
                                       dim3* block, dim3* grid, int* warp_size) {
#ifndef GPUPROF_NOP
  if (const Register own = own_registration(module, host_function)) {
    return own(module, host_function, device_function, device_name, thread_limit, thread_id,
               block_id, block, grid, warp_size);
  }
  gpuprof::register_function(module, host_function, device_name);
#endif
  Hook<Api::__cudaRegisterFunction, decltype(__cudaRegisterFunction)>::call_real(
      module, host_function, device_function, device_name, thread_limit, thread_id, block_id, block,
      grid, warp_size);
}

extern "C" void __cudaUnregisterFatBinary(void** module) {
#ifndef GPUPROF_NOP
  gpuprof::unregister_functions(module);
#endif
  Hook<Api::__cudaUnregisterFatBinary, decltype(__cudaUnregisterFatBinary)>::call_real(module);
}

namespace gpuprof {

void fill_registration_slots() {
#define GPUPROF_API(library, symbol, role)
#define GPUPROF_API_AS(library, symbol, model, role)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_ROWS_cudart(symbol) GPUPROF_FILL_HAND(symbol)
#define GPUPROF_ROWS_cupti(symbol)
#define GPUPROF_ROWS_driver(symbol)
#define GPUPROF_ROWS_nccl(symbol)
#define GPUPROF_HAND(library, symbol) GPUPROF_ROWS_##library(symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
#undef GPUPROF_ROWS_cudart
#undef GPUPROF_ROWS_cupti
#undef GPUPROF_ROWS_driver
#undef GPUPROF_ROWS_nccl
}

}  // namespace gpuprof
