// SPDX-License-Identifier: Apache-2.0
// What frameworks ask of the runtime besides: the driver's functions by name, the place of a
// variable, memory for other processes (which there is none of here).
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

#define SIM_REFUSED(name, version) \
  constexpr ApiInfo k_##name{#name, CUPTI_RUNTIME_TRACE_CBID_##name##version, true};
SIM_REFUSED(cudaIpcGetMemHandle, _v4010)
SIM_REFUSED(cudaIpcOpenMemHandle, _v4010)
SIM_REFUSED(cudaIpcCloseMemHandle, _v4010)
SIM_REFUSED(cudaIpcGetEventHandle, _v4010)
SIM_REFUSED(cudaIpcOpenEventHandle, _v4010)
#undef SIM_REFUSED

cudaError_t refuse(const ApiInfo& api) {
  return run_api(api, [](ApiCall&) { return cudaErrorNotSupported; });
}

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

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return refuse(k_cudaIpcGetMemHandle);
}
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return refuse(k_cudaIpcOpenMemHandle);
}
cudaError_t cudaIpcCloseMemHandle(void*) { return refuse(k_cudaIpcCloseMemHandle); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return refuse(k_cudaIpcGetEventHandle);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return refuse(k_cudaIpcOpenEventHandle);
}

}  // extern "C"
