// SPDX-License-Identifier: Apache-2.0
// Kernel launches in all their forms. Kernel bodies do not run; their durations do.
#include <cupti.h>

#include <algorithm>
#include <utility>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/core/simcuda.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr uint64_t kResidentThreads = 132ull * 2048;
constexpr size_t kMaxSharedBytes = 227 * 1024;

uint64_t volume(dim3 d) { return static_cast<uint64_t>(d.x) * d.y * d.z; }

// What the program asked for, else one SIMCUDA_KERNEL_NS per wave of threads, give or take 2 %.
uint64_t kernel_duration(Core& core, const LaunchRequest& request) {
  ThreadState& thread = thread_state();
  const uint64_t index = core.next_launch_index();
  if (thread.next_kernel_ns != 0) return std::exchange(thread.next_kernel_ns, 0);
  const uint64_t threads = volume(request.grid) * volume(request.block);
  const uint64_t waves = (threads + kResidentThreads - 1) / kResidentThreads;
  const uint64_t base = settings().kernel_ns * std::max<uint64_t>(waves, 1);
  const uint64_t spread = std::max<uint64_t>(base / 25, 1);
  return base - spread / 2 + mix64(settings().seed ^ index << 20) % spread;
}

void copy_shape(const LaunchRequest& request, uint32_t* grid, uint32_t* block) {
  grid[0] = request.grid.x, grid[1] = request.grid.y, grid[2] = request.grid.z;
  block[0] = request.block.x, block[1] = request.block.y, block[2] = request.block.z;
}

cudaError_t check(const LaunchRequest& request) {
  if (request.kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const uint64_t block = volume(request.block);
  if (volume(request.grid) == 0 || block == 0 || block > 1024) return cudaErrorInvalidConfiguration;
  if (request.shmem > kMaxSharedBytes) return cudaErrorInvalidValue;
  return cudaSuccess;
}

Work describe(const LaunchRequest& request) {
  Work work;
  work.info.kind = GpuOpKind::kKernel;
  work.info.name = request.kernel->name.c_str();
  work.info.cooperative = request.cooperative;
  work.info.dynamic_shmem = static_cast<uint32_t>(request.shmem);
  copy_shape(request, work.info.grid, work.info.block);
  work.info.cluster[0] = request.cluster.x;
  work.info.cluster[1] = request.cluster.y;
  work.info.cluster[2] = request.cluster.z;
  return work;
}

// The one path of all public launch functions.
cudaError_t launch_api(const StreamApi& which, const void* params, LaunchRequest request) {
  request.per_thread = which.per_thread;
  const char* symbol = request.kernel == nullptr ? nullptr : request.kernel->name.c_str();
  return run_api(which.api, params, symbol,
                 [&](ApiCall& call) { return launch_kernel(call, request); });
}

constexpr StreamApi kLaunch{{"cudaLaunchKernel", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000},
                            false};
constexpr StreamApi kLaunchPtsz{
    {"cudaLaunchKernel_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000}, true};
constexpr StreamApi kStubLaunch{
    {"__cudaLaunchKernel", CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000}, false};
constexpr StreamApi kStubLaunchPtsz{
    {"__cudaLaunchKernel_ptsz", CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000}, true};
constexpr StreamApi kLaunchEx{
    {"cudaLaunchKernelExC", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060}, false};
constexpr StreamApi kLaunchExPtsz{
    {"cudaLaunchKernelExC_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060}, true};
constexpr StreamApi kCooperative{
    {"cudaLaunchCooperativeKernel", CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000},
    false};
constexpr StreamApi kCooperativePtsz{
    {"cudaLaunchCooperativeKernel_ptsz",
     CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000},
    true};

LaunchRequest plain_request(const void* function, dim3 grid, dim3 block, size_t shmem,
                            cudaStream_t stream) {
  LaunchRequest request;
  request.kernel = KernelRegistry::instance().find(function);
  request.grid = grid;
  request.block = block;
  request.shmem = shmem;
  request.stream = stream;
  return request;
}

cudaError_t launch_plain(const StreamApi& which, const void* function, dim3 grid, dim3 block,
                         void** args, size_t shmem, cudaStream_t stream) {
  const cudaLaunchKernel_v7000_params params{function, grid, block, args, shmem, stream};
  return launch_api(which, &params, plain_request(function, grid, block, shmem, stream));
}

cudaError_t launch_cooperative(const StreamApi& which, const void* function, dim3 grid, dim3 block,
                               void** args, size_t shmem, cudaStream_t stream) {
  const cudaLaunchCooperativeKernel_v9000_params params{function, grid, block, args, shmem, stream};
  LaunchRequest request = plain_request(function, grid, block, shmem, stream);
  request.cooperative = true;
  return launch_api(which, &params, request);
}

cudaError_t launch_ex(const StreamApi& which, const cudaLaunchConfig_t* config,
                      const void* function, void** args) {
  const cudaLaunchKernelExC_v11060_params params{config, function, args};
  if (config == nullptr) {
    return run_api(which.api, [](ApiCall&) { return cudaErrorInvalidValue; });
  }
  LaunchRequest request = plain_request(function, config->gridDim, config->blockDim,
                                        config->dynamicSmemBytes, config->stream);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) {
      request.cooperative = attribute.val.cooperative != 0;
    } else if (attribute.id == cudaLaunchAttributeClusterDimension) {
      const auto& cluster = attribute.val.clusterDim;
      request.cluster = dim3(cluster.x, cluster.y, cluster.z);
    }
  }
  return launch_api(which, &params, request);
}

}  // namespace

NestedDriverCall::NestedDriverCall(bool wanted, uint32_t cbid, const char* name, const char* symbol,
                                   uint32_t correlation) {
  CuptiSink* cupti = Core::instance().sink();
  if (cupti == nullptr || !wanted) return;
  event_.driver = true;
  event_.cbid = cbid;
  event_.name = name;
  event_.symbol = symbol;
  event_.correlation = correlation;
  event_.device = thread_state().device;
  event_.return_value = &result_;
  event_.enter_seen = true;
  event_.begin = now_ns();
  cupti->api_enter(event_);
}

NestedDriverCall::~NestedDriverCall() {
  CuptiSink* cupti = Core::instance().sink();
  if (cupti == nullptr || !event_.enter_seen) return;
  event_.end = now_ns();
  cupti->api_exit(event_);
}

cudaError_t launch_kernel(ApiCall& call, const LaunchRequest& request) {
  call.details.device = thread_state().device;
  call.details.has_shape = true;
  copy_shape(request, call.details.grid, call.details.block);
  call.details.shmem = static_cast<uint32_t>(request.shmem);
  if (request.kernel != nullptr) call.details.kernel = request.kernel->name.c_str();
  if (const cudaError_t bad = check(request); bad != cudaSuccess) {
    thread_state().next_kernel_ns = 0;
    return bad;
  }
  const NestedDriverCall nested(!call.is_driver(),
                                request.per_thread ? CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz
                                                   : CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                request.per_thread ? "cuLaunchKernel_ptsz" : "cuLaunchKernel",
                                request.kernel->name.c_str(), call.correlation());
  Core& core = Core::instance();
  const Core::Lock held = core.lock();
  const auto stream = core.stream(request.stream, request.per_thread);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
  call.details.stream = stream->id;
  Work work = describe(request);
  work.duration = kernel_duration(core, request);
  core.submit(*stream, std::move(work), call.correlation());
  return cudaSuccess;
}

Work kernel_work(const cudaKernelNodeParams& params) {
  LaunchRequest request;
  request.kernel = KernelRegistry::instance().find(params.func);
  request.grid = params.gridDim;
  request.block = params.blockDim;
  request.shmem = params.sharedMemBytes;
  if (request.kernel == nullptr) return {};
  Work work = describe(request);
  work.duration = kernel_duration(Core::instance(), request);
  return work;
}

}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaLaunchKernel(const void* func, dim3 grid, dim3 block, void** args, size_t shmem,
                             cudaStream_t stream) {
  return launch_plain(kLaunch, func, grid, block, args, shmem, stream);
}
cudaError_t cudaLaunchKernel_ptsz(const void* func, dim3 grid, dim3 block, void** args,
                                  size_t shmem, cudaStream_t stream) {
  return launch_plain(kLaunchPtsz, func, grid, block, args, shmem, stream);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shmem, cudaStream_t stream) {
  return launch_plain(kStubLaunch, kernel, grid, block, args, shmem, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                    size_t shmem, cudaStream_t stream) {
  return launch_plain(kStubLaunchPtsz, kernel, grid, block, args, shmem, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  return launch_ex(kLaunchEx, config, func, args);
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* func,
                                     void** args) {
  return launch_ex(kLaunchExPtsz, config, func, args);
}
cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 grid, dim3 block, void** args,
                                        size_t shmem, cudaStream_t stream) {
  return launch_cooperative(kCooperative, func, grid, block, args, shmem, stream);
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* func, dim3 grid, dim3 block, void** args,
                                             size_t shmem, cudaStream_t stream) {
  return launch_cooperative(kCooperativePtsz, func, grid, block, args, shmem, stream);
}

void simcuda_set_next_kernel_ns(uint64_t ns) { thread_state().next_kernel_ns = ns; }

}  // extern "C"
