// SPDX-License-Identifier: Apache-2.0
// Host functions in a stream: each really runs, on a thread of its own, when the device gets there.
#include <cupti.h>

#include <thread>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/later_callbacks.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

// Open when the function has returned.
class HostFunctionGate final : public Gate {
 public:
  HostFunctionGate(cudaHostFn_t function, void* data) : state_(std::make_shared<State>()) {
    state_->function = function;
    state_->data = data;
  }
  bool resolve(uint64_t* start, uint64_t* end) override {
    if (!started_) {
      started_ = true;
      std::thread([state = state_, begin = *start] {
        sleep_until_ns(begin);
        state->function(state->data);
        state->end.store(now_ns(), std::memory_order_release);
      }).detach();
    }
    const uint64_t over = state_->end.load(std::memory_order_acquire);
    if (over == 0) return false;
    *end = std::max(over, *start);
    return true;
  }

 private:
  struct State {
    cudaHostFn_t function = nullptr;
    void* data = nullptr;
    std::atomic<uint64_t> end{0};
  };
  std::shared_ptr<State> state_;
  bool started_ = false;
};

class HostFunction final : public GateFactory {
 public:
  HostFunction(cudaHostFn_t function, void* data) : function_(function), data_(data) {}
  std::shared_ptr<Gate> make() override {
    return std::make_shared<HostFunctionGate>(function_, data_);
  }

 private:
  cudaHostFn_t function_;
  void* data_;
};

cudaError_t launch(const StreamApi& which, cudaStream_t handle, cudaHostFn_t function, void* data) {
  return run_api(which.api, [&](ApiCall& call) {
    if (function == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    Work work;
    work.gate = std::make_shared<HostFunction>(function, data);
    core.submit(*stream, std::move(work), call.correlation());
    return cudaSuccess;
  });
}

constexpr StreamApi kCallback{
    {"cudaStreamAddCallback", CUPTI_RUNTIME_TRACE_CBID_cudaStreamAddCallback_v5000}, false};
constexpr StreamApi kLaunch{
    {"cudaLaunchHostFunc", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchHostFunc_v10000}, false};
constexpr StreamApi kLaunchPtsz{
    {"cudaLaunchHostFunc_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchHostFunc_ptsz_v10000}, true};
constexpr StreamApi kLaunch2{{"cudaLaunchHostFunc_v2", kLaterHostFunction}, false};
constexpr StreamApi kLaunch2Ptsz{{"cudaLaunchHostFunc_v2_ptsz", kLaterHostFunctionPtsz}, true};

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return launch(kLaunch, stream, function, data);
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return launch(kLaunchPtsz, stream, function, data);
}
// Since 13.2.
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t function, void* data,
                                  unsigned) {
  return launch(kLaunch2, stream, function, data);
}
cudaError_t cudaLaunchHostFunc_v2_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data,
                                       unsigned) {
  return launch(kLaunch2Ptsz, stream, function, data);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  struct Callback {
    cudaStream_t stream;
    cudaStreamCallback_t function;
    void* data;
  };
  const cudaHostFn_t run = [](void* argument) {
    auto* const call = static_cast<Callback*>(argument);
    call->function(call->stream, cudaSuccess, call->data);
    delete call;
  };
  auto* const call = new Callback{stream, callback, data};
  const cudaError_t result = launch(kCallback, stream, callback != nullptr ? run : nullptr, call);
  if (result != cudaSuccess) delete call;
  return result;
}

}  // extern "C"
