// SPDX-License-Identifier: Apache-2.0
// Error names and the thread's last error.
#include <cupti.h>

#include <algorithm>
#include <iterator>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

struct ErrorName {
  int code;
  const char* name;
};

constexpr ErrorName kErrorNames[] = {
#include "simcuda_error_names.inc"
};

struct ErrorText {
  cudaError_t code;
  const char* text;
};

constexpr ErrorText kErrorTexts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorLaunchFailure, "unspecified launch failure"},
};

constexpr ApiInfo kGetLast{"cudaGetLastError", CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
                           true};
constexpr ApiInfo kPeekLast{"cudaPeekAtLastError",
                            CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020, true};

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const auto* found = std::find_if(std::begin(kErrorNames), std::end(kErrorNames),
                                   [error](const ErrorName& e) { return e.code == error; });
  return found == std::end(kErrorNames) ? "unrecognized error code" : found->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto* found = std::find_if(std::begin(kErrorTexts), std::end(kErrorTexts),
                                   [error](const ErrorText& e) { return e.code == error; });
  return found == std::end(kErrorTexts) ? cudaGetErrorName(error) : found->text;
}

cudaError_t cudaGetLastError(void) {
  cudaError_t last = thread_state().last_error;
  run_api(kGetLast, [](ApiCall&) { return cudaSuccess; });
  thread_state().last_error = cudaSuccess;
  return last;
}

cudaError_t cudaPeekAtLastError(void) {
  run_api(kPeekLast, [](ApiCall&) { return cudaSuccess; });
  return thread_state().last_error;
}

}  // extern "C"
