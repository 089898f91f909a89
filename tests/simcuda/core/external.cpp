// SPDX-License-Identifier: Apache-2.0
// What libnccl asks of the core: launches and memory that do not pass the exported names, as with
// the real library, which carries a runtime of its own.
#include <cuda_runtime.h>
#include <cupti.h>

#include "tests/simcuda/core/api_call.h"
#include "tests/simcuda/core/kernel_registry.h"
#include "tests/simcuda/core/version.h"

namespace gpuprof::simcuda {
namespace {

constexpr ApiInfo kDriverLaunch{"cuLaunchKernelEx", CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, false,
                                true};
constexpr ApiInfo kRuntimeLaunch{"cudaLaunchKernelExC",
                                 CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060};
constexpr ApiInfo kCopy{"cudaMemcpyAsync", CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020};
constexpr ApiInfo kCopies{"cudaMemcpyBatchAsync",
                          CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v13000};
constexpr ApiInfo kOldCopies{"cudaMemcpyBatchAsync",
                             CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v12080};
constexpr ApiInfo kWait{"cuStreamBatchMemOp", CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp_v2, false,
                        true};

const ApiInfo& api_of(const ExternalLaunch& launch) {
  switch (launch.kind) {
    case ExternalKind::copy: return kCopy;
    case ExternalKind::copies: return cuda_version() < 13000 ? kOldCopies : kCopies;
    case ExternalKind::wait: return kWait;
    case ExternalKind::kernel: break;
  }
  return launch.via_driver ? kDriverLaunch : kRuntimeLaunch;
}

// What the call is told with, as CUpti_CallbackData::functionParams has it for each call.
struct Parameters {
  CUlaunchConfig driver_config{};
  cudaLaunchConfig_t runtime_config{};
  cuLaunchKernelEx_params driver{&driver_config, nullptr, nullptr, nullptr};
  cudaLaunchKernelExC_v11060_params runtime{&runtime_config, nullptr, nullptr};
  cudaMemcpyAsync_v3020_params copy{nullptr, nullptr, 0, cudaMemcpyDeviceToDevice, nullptr};

  explicit Parameters(const ExternalLaunch& launch) {
    driver_config.gridDimX = launch.grid;
    driver_config.blockDimX = launch.block;
    driver_config.gridDimY = driver_config.gridDimZ = 1;
    driver_config.blockDimY = driver_config.blockDimZ = 1;
    driver_config.hStream = launch.stream;
    runtime_config.gridDim = dim3(launch.grid);
    runtime_config.blockDim = dim3(launch.block);
    runtime_config.stream = launch.stream;
    copy.count = launch.bytes;
    copy.stream = launch.stream;
  }
  const void* of(const ExternalLaunch& launch) const {
    if (launch.kind == ExternalKind::copy) return &copy;
    if (launch.kind != ExternalKind::kernel) return nullptr;
    return launch.via_driver ? static_cast<const void*>(&driver)
                             : static_cast<const void*>(&runtime);
  }
};

Work work_of(const ExternalLaunch& launch, const KernelInfo* kernel) {
  Work work;
  work.gate = launch.gate;
  if (launch.kind == ExternalKind::kernel) {
    work.info.kind = GpuOpKind::kKernel;
    work.info.name = kernel->name.c_str();
    work.info.grid[0] = launch.grid;
    work.info.block[0] = launch.block;
  } else if (launch.kind != ExternalKind::wait) {
    work.info.kind = GpuOpKind::kMemcpy;
    work.info.copy_kind = CopyKind::kDtoD;
    work.info.src_kind = work.info.dst_kind = MemoryKind::kDevice;
    work.info.src_device = work.info.dst_device = launch.device;
    work.info.bytes = launch.bytes;
    work.info.copy_count = launch.count;
    work.duration = launch.duration;
  }
  return work;
}

}  // namespace

cudaError_t Core::launch_external(const ExternalLaunch& launch) {
  const bool of_kernel = launch.kind == ExternalKind::kernel;
  const KernelInfo* const kernel =
      of_kernel ? KernelRegistry::instance().named(launch.kernel_name) : nullptr;
  const int caller_device = thread_state().device;
  thread_state().device = launch.device;
  const Parameters parameters(launch);
  ApiCall call(api_of(launch), parameters.of(launch), kernel ? kernel->name.c_str() : nullptr,
               CallOrigin::kNccl);
  cudaError_t result = call.refusal();
  if (result == cudaSuccess) {
    const Lock held = lock();
    const auto found = stream(launch.stream, false);
    result = found == nullptr ? cudaErrorInvalidResourceHandle : refuse_use(*found);
    if (result == cudaSuccess) {
      Work work = work_of(launch, kernel);
      call.details.device = found->device;
      call.details.stream = found->id;
      if (of_kernel) {
        call.details.kernel = work.info.name;
        call.details.has_shape = true;
        for (int i = 0; i < 3; ++i) {
          call.details.grid[i] = work.info.grid[i];
          call.details.block[i] = work.info.block[i];
        }
      } else if (launch.kind != ExternalKind::wait) {
        call.details.bytes = static_cast<int64_t>(launch.bytes);
        call.details.copy_kind = work.info.copy_kind;
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
