// SPDX-License-Identifier: Apache-2.0
// What frameworks ask of the runtime besides: the driver's functions by name, the place of a
// variable.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstring>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr ApiInfo kSymbolAddress{"cudaGetSymbolAddress",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaGetSymbolAddress_v3020, true};
constexpr ApiInfo kEntryPoint{"cudaGetDriverEntryPointByVersion",
                              CUPTI_RUNTIME_TRACE_CBID_cudaGetDriverEntryPointByVersion_v12050,
                              true};

// As the shared runtime finds it: in libcuda, by dlsym.
using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
Ask driver_asker() {
  static const Ask ask = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* const symbol = driver != nullptr ? ::dlsym(driver, "cuGetProcAddress_v2") : nullptr;
    Ask found = nullptr;
    std::memcpy(&found, &symbol, sizeof found);
    return found;
  }();
  return ask;
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** out, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return run_api(kEntryPoint, [&](ApiCall&) {
    if (symbol == nullptr || out == nullptr) return cudaErrorInvalidValue;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const auto result = driver_asker()(symbol, out, static_cast<int>(version), flags, &found);
    if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return static_cast<cudaError_t>(result);
  });
}

cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
  return run_api(kSymbolAddress, [&](ApiCall&) {
    if (out == nullptr) return cudaErrorInvalidValue;
    if (KernelRegistry::instance().variable_bytes(symbol) == 0) return cudaErrorInvalidSymbol;
    *out = const_cast<void*>(symbol);  // the host's shadow stands for it on the device
    return cudaSuccess;
  });
}

}  // extern "C"
