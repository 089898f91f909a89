// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/simtrain/kernels.h"

#include <dlfcn.h>

#include <array>
#include <utility>

// What nvcc's host code uses; the toolkit declares these for nvcc alone.
extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, struct CUstream_st*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
}

namespace gpuprof::simtrain {
namespace {

constexpr size_t kKernels = static_cast<size_t>(Kernel::kCount);
using Stub = cudaError_t (*)();

// Mangled names, as the compiler would give them.
constexpr const char* kNames[kKernels] = {
    "_Z8gemm_fwdPKfS0_Pfiii",       "_Z10layer_normPKfPfi",           "_Z11elementwisePfi",
    "_Z13gemm_bwd_dataPKfS0_Pfiii", "_Z15gemm_bwd_weightPKfS0_Pfiii", "_Z12softmax_lossPKfPfi",
    "_Z17multi_tensor_adamPfPKfi",
};

// Before CUDA 13 nvcc's code launched by the function's address.
bool launches_by_kernel() {
  static const bool by_kernel = [] {
    int version = 0;
    return cudaRuntimeGetVersion(&version) == cudaSuccess && version >= 13000;
  }();
  return by_kernel;
}

// One function per kernel: its address is what the runtime knows the kernel by.
template <size_t Id>
cudaError_t stub() {
  static const cudaKernel_t kernel = [] {
    cudaKernel_t handle = nullptr;
    __cudaGetKernel(&handle, reinterpret_cast<const void*>(&stub<Id>));
    return handle;
  }();
  dim3 grid;
  dim3 block;
  size_t shmem = 0;
  cudaStream_t stream = nullptr;
  if (__cudaPopCallConfiguration(&grid, &block, &shmem, &stream) != cudaSuccess) {
    return cudaErrorMissingConfiguration;
  }
  if (!launches_by_kernel()) {
    return cudaLaunchKernel(reinterpret_cast<const void*>(&stub<Id>), grid, block, nullptr, shmem,
                            stream);
  }
  return __cudaLaunchKernel(kernel, grid, block, nullptr, shmem, stream);
}

template <size_t... Ids>
constexpr std::array<Stub, kKernels> stubs_of(std::index_sequence<Ids...>) {
  return {&stub<Ids>...};
}

constexpr std::array<Stub, kKernels> kStubs = stubs_of(std::make_index_sequence<kKernels>());

void** module_handle = nullptr;

__attribute__((constructor)) void register_kernels() {
  static int fat_binary = 0;
  module_handle = __cudaRegisterFatBinary(&fat_binary);
  for (size_t i = 0; i < kKernels; ++i) {
    const char* address = reinterpret_cast<const char*>(kStubs[i]);
    __cudaRegisterFunction(module_handle, address, const_cast<char*>(kNames[i]), kNames[i], -1,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  __cudaRegisterFatBinaryEnd(module_handle);
}

__attribute__((destructor)) void unregister_kernels() { __cudaUnregisterFatBinary(module_handle); }

void set_next_duration(uint64_t ns) {
  using Setter = void (*)(uint64_t);
  static const auto setter =
      reinterpret_cast<Setter>(::dlsym(RTLD_DEFAULT, "simcuda_set_next_kernel_ns"));
  if (setter != nullptr) setter(ns);
}

}  // namespace

cudaError_t launch(Kernel kernel, dim3 grid, dim3 block, cudaStream_t stream, uint64_t ns) {
  set_next_duration(ns);
  if (__cudaPushCallConfiguration(grid, block, 0, stream) != 0) return cudaErrorLaunchFailure;
  return kStubs[static_cast<size_t>(kernel)]();
}

}  // namespace gpuprof::simtrain
