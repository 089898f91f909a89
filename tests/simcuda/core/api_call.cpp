// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/api_call.h"

#include <cupti.h>

#include <utility>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/core/start.h"
#include "tests/simcuda/core/truth_log.h"

namespace gpuprof::simcuda {
namespace {

// cudaSuccess unless SIMCUDA_FAIL names this call.
cudaError_t injected_failure(const char* name) {
  if (settings().failures.empty()) return cudaSuccess;
  const auto it = settings().failures.find(name);
  if (it == settings().failures.end()) return cudaSuccess;
  static std::mutex& mutex = *new std::mutex();
  static auto& calls = *new std::map<std::string, uint64_t>();
  const std::lock_guard<std::mutex> lock(mutex);
  const bool hit = ++calls[it->first] == it->second.call;
  return hit ? static_cast<cudaError_t>(it->second.error) : cudaSuccess;
}

// "This leaves the process in an inconsistent state and any further CUDA work will return the same
// error. To continue using CUDA, the process must be terminated and relaunched." (driver_types.h)
bool is_for_good(cudaError_t error) {
  switch (error) {
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}

// As of CUDA 12.0, cudaRuntimeGetVersion "no longer initializes CUDA" (CUDA runtime API).
bool starts_driver(const ApiInfo& info) {
  return !info.driver && info.cbid != CUPTI_RUNTIME_TRACE_CBID_cudaRuntimeGetVersion_v3020;
}

std::atomic<cudaError_t> error_for_good{cudaSuccess};

// What the call is really made as; consumes the thread's DriverCall.
DriverCall taken(const ApiInfo& info, const void* params) {
  const DriverCall driver = std::exchange(thread_state().driver_call, DriverCall{});
  return driver.api != nullptr ? driver : DriverCall{&info, params};
}

}  // namespace

ApiCall::ApiCall(const ApiInfo& info, const void* params, const char* symbol, CallOrigin origin)
    : ApiCall(taken(info, params), symbol, origin) {}

ApiCall::ApiCall(const DriverCall& as, const char* symbol, CallOrigin origin)
    : info_(*as.api), origin_(origin) {
  // "Any driver API function call" before cuInit "will return CUDA_ERROR_NOT_INITIALIZED" (CUDA
  // driver API, cuInit).
  if (starts_driver(info_) || origin_ == CallOrigin::kNccl) start_driver();
  event_.begin = now_ns();
  TruthLog::instance().make_room();
  Core& core = Core::instance();
  event_.driver = info_.driver;
  event_.cbid = info_.cbid;
  event_.name = info_.name;
  event_.params = as.params;
  event_.symbol = symbol;
  event_.return_value = &result_;
  // The device's primary context "is initialized at the first runtime function which requires an
  // active context on this device" (CUDA C++ Programming Guide, "Initialization"), and made the
  // thread's within that call: before it cuCtxGetCurrent gives none.
  if (!info_.driver && !info_.trivial) thread_state().has_context = true;
  event_.device = thread_state().device;
  const uint32_t around = info_.driver ? thread_state().static_runtime_call : 0;
  event_.correlation = around != 0 ? around : core.next_correlation();
  if (CuptiSink* cupti = core.sink()) {
    event_.enter_seen = true;
    cupti->api_enter(event_);
  }
}

cudaError_t ApiCall::refusal() const {
  const cudaError_t health = Core::instance().health();
  if (health != cudaSuccess) return health;
  if (info_.driver && !driver_is_started()) return cudaErrorInitializationError;
  const cudaError_t before = info_.trivial ? cudaSuccess : error_for_good.load();
  return before != cudaSuccess ? before : injected_failure(info_.name);
}

cudaError_t ApiCall::finish(cudaError_t result) {
  ThreadState& thread = thread_state();
  result_ = result;
  if (is_for_good(result)) error_for_good = result;
  // cudaErrorNotReady "is not considered an error and is therefore not reported" (CUDA C++
  // Programming Guide, "Error Checking").
  if (result != cudaSuccess && result != cudaErrorNotReady && !info_.driver) {
    thread.last_error = result;
  }
  event_.return_code = static_cast<uint32_t>(result);
  event_.end = now_ns();
  if (CuptiSink* cupti = Core::instance().sink()) {
    for (const GraphEvent& node : thread.created_nodes) cupti->graph_changed(node);
    cupti->api_exit(event_);
    event_.end = now_ns();
  }
  thread.created_nodes.clear();
  if (TruthLog::instance().enabled() && (!info_.trivial || settings().truth_all)) {
    write_truth(event_, details, thread.tid, origin_, info_.trivial);
  }
  return result_;
}

}  // namespace gpuprof::simcuda
