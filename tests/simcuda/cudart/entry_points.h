// SPDX-License-Identifier: Apache-2.0
// Declarations that the CUDA headers give only to nvcc, or only under another name: the <<<>>>
// ABI and the per-thread-default-stream variants, whose types are those of the plain names.
#pragma once

#include <cuda_runtime_api.h>

#include "tests/simcuda/core/api_call.h"
#include "tests/simcuda/core/kernel_registry.h"

namespace gpuprof::simcuda {

// An entry point that takes a stream, in one of its two forms.
struct StreamApi {
  ApiInfo api;
  bool per_thread;  // a null stream means the thread's own default stream
};

struct LaunchRequest {
  KernelInfo* kernel = nullptr;
  dim3 grid;
  dim3 block;
  dim3 cluster = dim3(0, 0, 0);
  size_t shmem = 0;
  cudaStream_t stream = nullptr;
  bool per_thread = false;
  bool cooperative = false;
};

cudaError_t launch_kernel(ApiCall& call, const LaunchRequest& request);

// The work of a graph's kernel node; without a name where there is no such kernel. Under the core's
// lock.
Work kernel_work(const cudaKernelNodeParams& params);

// Makes the driver's function `api` out of the runtime's: `body` calls one exported function of it.
// Their error codes have the same numbers.
template <typename Body>
int run_driver(const ApiInfo& api, const void* params, Body&& body) {
  thread_state().driver_call = DriverCall{&api, params};
  const cudaError_t result = body();
  thread_state().driver_call = DriverCall{};
  return static_cast<int>(result);
}

// Fires CUPTI's driver-domain callbacks of a driver call made inside a runtime call.
class NestedDriverCall {
 public:
  NestedDriverCall(bool wanted, uint32_t cbid, const char* name, const char* symbol,
                   uint32_t correlation);
  ~NestedDriverCall();
  NestedDriverCall(const NestedDriverCall&) = delete;
  NestedDriverCall& operator=(const NestedDriverCall&) = delete;

 private:
  ApiEvent event_;
  int result_ = 0;
};

inline bool valid_device(int device) {
  return device >= 0 && device < Core::instance().device_count();
}

}  // namespace gpuprof::simcuda

extern "C" {
decltype(cudaLaunchKernel) cudaLaunchKernel_ptsz;
decltype(cudaLaunchKernelExC) cudaLaunchKernelExC_ptsz;
decltype(cudaLaunchCooperativeKernel) cudaLaunchCooperativeKernel_ptsz;
decltype(cudaMemcpy) cudaMemcpy_ptds;
decltype(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
decltype(cudaMemcpy2D) cudaMemcpy2D_ptds;
decltype(cudaMemcpy2DAsync) cudaMemcpy2DAsync_ptsz;
decltype(cudaMemcpy3D) cudaMemcpy3D_ptds;
decltype(cudaMemcpy3DAsync) cudaMemcpy3DAsync_ptsz;
decltype(cudaLaunchHostFunc) cudaLaunchHostFunc_ptsz;
decltype(cudaMemcpyToSymbol) cudaMemcpyToSymbol_ptds;
decltype(cudaMemcpyFromSymbol) cudaMemcpyFromSymbol_ptds;
decltype(cudaMemcpyToSymbolAsync) cudaMemcpyToSymbolAsync_ptsz;
decltype(cudaMemcpyFromSymbolAsync) cudaMemcpyFromSymbolAsync_ptsz;
decltype(cudaMemset) cudaMemset_ptds;
decltype(cudaMemsetAsync) cudaMemsetAsync_ptsz;
decltype(cudaMemset2D) cudaMemset2D_ptds;
decltype(cudaMemset2DAsync) cudaMemset2DAsync_ptsz;
decltype(cudaMallocAsync) cudaMallocAsync_ptsz;
decltype(cudaMallocFromPoolAsync) cudaMallocFromPoolAsync_ptsz;
decltype(cudaFreeAsync) cudaFreeAsync_ptsz;
decltype(cudaStreamSynchronize) cudaStreamSynchronize_ptsz;
decltype(cudaStreamQuery) cudaStreamQuery_ptsz;
decltype(cudaStreamWaitEvent) cudaStreamWaitEvent_ptsz;
decltype(cudaStreamGetFlags) cudaStreamGetFlags_ptsz;
decltype(cudaStreamGetPriority) cudaStreamGetPriority_ptsz;
decltype(cudaStreamGetId) cudaStreamGetId_ptsz;
decltype(cudaStreamGetDevice) cudaStreamGetDevice_ptsz;
decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
decltype(cudaStreamBeginCaptureToGraph) cudaStreamBeginCaptureToGraph_ptsz;
decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
decltype(cudaStreamIsCapturing) cudaStreamIsCapturing_ptsz;
decltype(cudaStreamGetCaptureInfo) cudaStreamGetCaptureInfo_ptsz;
decltype(cudaEventRecord) cudaEventRecord_ptsz;
decltype(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz;
decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz;
decltype(cudaGraphUpload) cudaGraphUpload_ptsz;
decltype(cudaGraphInstantiateWithParams) cudaGraphInstantiateWithParams_ptsz;

// As in the toolkit's crt/host_runtime.h and crt/device_functions.h, which nvcc alone can read.
void** __cudaRegisterFatBinary(void* fat_cubin);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, uint3* tid, uint3* bid,
                            dim3* block, dim3* grid, int* warp_size);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address,
                       const char* device_name, int ext, size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void** handle, void** host_variable, char* device_address,
                              const char* device_name, int ext, size_t bytes, int constant,
                              int global);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shmem,
                                     struct CUstream_st* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shmem, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shmem, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                                    size_t shmem, cudaStream_t stream);
}
