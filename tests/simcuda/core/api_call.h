// SPDX-License-Identifier: Apache-2.0
// One call of an exported function, from entry to return: correlation id, CUPTI callbacks and
// records, injected failures, the last error, the truth log.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tests/simcuda/core/core.h"
#include "tests/simcuda/core/truth_lines.h"

namespace gpuprof::simcuda {

struct ApiInfo {
  const char* name;
  uint32_t cbid;
  bool trivial = false;  // a getter: in the truth log only under SIMCUDA_TRUTH_ALL
  bool driver = false;
};

class ApiCall {
 public:
  ApiCall(const ApiInfo& info, const void* params, const char* symbol, CallOrigin origin);
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;

  // What the call must return without doing anything, or cudaSuccess.
  cudaError_t refusal() const;
  cudaError_t finish(cudaError_t result);

  uint32_t correlation() const { return event_.correlation; }
  uint64_t begin() const { return event_.begin; }
  bool is_driver() const { return event_.driver; }
  CallDetails details;

 private:
  ApiCall(const DriverCall& as, const char* symbol, CallOrigin origin);

  const ApiInfo& info_;
  const CallOrigin origin_;
  ApiEvent event_;
  cudaError_t result_ = cudaSuccess;
};

// Runs `body(call)` as the exported function `info`. `params` is CUPTI's parameter block or
// nullptr; `symbol` the kernel's name for launches.
template <typename Body>
cudaError_t run_api(const ApiInfo& info, const void* params, const char* symbol, Body&& body) {
  ApiCall call(info, params, symbol, CallOrigin::kApplication);
  const cudaError_t refused = call.refusal();
  return call.finish(refused != cudaSuccess ? refused : body(call));
}

template <typename Body>
cudaError_t run_api(const ApiInfo& info, Body&& body) {
  return run_api(info, nullptr, nullptr, static_cast<Body&&>(body));
}

}  // namespace gpuprof::simcuda
