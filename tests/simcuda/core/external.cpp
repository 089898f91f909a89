// SPDX-License-Identifier: Apache-2.0
// What libnccl asks of the core: launches and memory that do not pass the exported names, as with
// the real library, which carries a runtime of its own.
#include <cuda_runtime.h>
#include <cupti.h>

#include "tests/simcuda/core/api_call.h"
#include "tests/simcuda/core/kernel_registry.h"

namespace gpuprof::simcuda {
namespace {

constexpr ApiInfo kDriverLaunch{"cuLaunchKernelEx", CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, false,
                                true};
constexpr ApiInfo kRuntimeLaunch{"cudaLaunchKernelExC",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060};

// What the call is told with, as CUpti_CallbackData::functionParams has it for each call.
struct Parameters {
  CUlaunchConfig driver_config{};
  cudaLaunchConfig_t runtime_config{};
  cuLaunchKernelEx_params driver{&driver_config, nullptr, nullptr, nullptr};
  cudaLaunchKernelExC_v11060_params runtime{&runtime_config, nullptr, nullptr};

  explicit Parameters(const ExternalLaunch& launch) {
    driver_config.gridDimX = launch.grid;
    driver_config.blockDimX = launch.block;
    driver_config.gridDimY = driver_config.gridDimZ = 1;
    driver_config.blockDimY = driver_config.blockDimZ = 1;
    driver_config.hStream = launch.stream;
    runtime_config.gridDim = dim3(launch.grid);
    runtime_config.blockDim = dim3(launch.block);
    runtime_config.stream = launch.stream;
  }
};

}  // namespace

cudaError_t Core::launch_external(const ExternalLaunch& launch) {
  const KernelInfo* kernel = KernelRegistry::instance().named(launch.kernel_name);
  const ApiInfo& info = launch.via_driver ? kDriverLaunch : kRuntimeLaunch;
  const int caller_device = thread_state().device;
  thread_state().device = launch.device;
  const Parameters parameters(launch);
  const void* const given = launch.via_driver ? static_cast<const void*>(&parameters.driver)
                                              : static_cast<const void*>(&parameters.runtime);
  ApiCall call(info, given, kernel->name.c_str(), CallOrigin::kNccl);
  cudaError_t result = call.refusal();
  if (result == cudaSuccess) {
    const Lock held = lock();
    const auto found = stream(launch.stream, false);
    result = found == nullptr ? cudaErrorInvalidResourceHandle : refuse_use(*found);
    if (result == cudaSuccess) {
      Work work;
      work.info.kind = GpuOpKind::kKernel;
      work.info.name = kernel->name.c_str();
      work.info.grid[0] = launch.grid;
      work.info.block[0] = launch.block;
      work.gate = launch.gate;
      call.details.device = found->device;
      call.details.stream = found->id;
      call.details.kernel = work.info.name;
      call.details.has_shape = true;
      for (int i = 0; i < 3; ++i) {
        call.details.grid[i] = work.info.grid[i];
        call.details.block[i] = work.info.block[i];
      }
      submit(*found, std::move(work), call.correlation());
      if (timeline_.progress()) changed_.notify_all();
    }
  }
  call.finish(result);
  thread_state().device = caller_device;
  return result;
}

cudaError_t Core::allocate(void** out, size_t bytes) {
  const auto memory = memory_.allocate(MemoryKind::kDevice, bytes, thread_state().device, false);
  if (!memory) return cudaErrorMemoryAllocation;
  *out = reinterpret_cast<void*>(memory->address);
  return cudaSuccess;
}

cudaError_t Core::release(void* pointer) {
  return memory_.release(pointer) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace gpuprof::simcuda
