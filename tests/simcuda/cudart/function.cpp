// SPDX-License-Identifier: Apache-2.0
// What programs ask about a kernel before launching it.
#include <cupti.h>

#include <algorithm>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr ApiInfo kAttributes{"cudaFuncGetAttributes",
                              CUPTI_RUNTIME_TRACE_CBID_cudaFuncGetAttributes_v3020, true};
constexpr ApiInfo kSetAttribute{"cudaFuncSetAttribute",
                                CUPTI_RUNTIME_TRACE_CBID_cudaFuncSetAttribute_v9000, true};
constexpr ApiInfo kOccupancy{
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    CUPTI_RUNTIME_TRACE_CBID_cudaOccupancyMaxActiveBlocksPerMultiprocessor_v6050, true};
constexpr ApiInfo kOccupancyFlags{
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    CUPTI_RUNTIME_TRACE_CBID_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000, true};

// By threads (2048 per multiprocessor), blocks (32) and shared memory (228 KiB).
cudaError_t occupancy(const ApiInfo& which, int* blocks, const void* func, int block_size,
                      size_t shmem) {
  return run_api(which, [&](ApiCall&) {
    if (blocks == nullptr || block_size <= 0) return cudaErrorInvalidValue;
    if (KernelRegistry::instance().find(func) == nullptr) return cudaErrorInvalidDeviceFunction;
    const size_t by_memory = shmem == 0 ? 32 : 228 * 1024 / shmem;
    const int by_threads = 2048 / ((block_size + 31) / 32 * 32);
    *blocks = std::min({32, by_threads, static_cast<int>(by_memory)});
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* func) {
  return run_api(kAttributes, [&](ApiCall&) {
    const KernelInfo* kernel = KernelRegistry::instance().find(func);
    if (out == nullptr) return cudaErrorInvalidValue;
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    *out = cudaFuncAttributes{};
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->binaryVersion = out->ptxVersion = 90;
    out->maxDynamicSharedSizeBytes = kernel->dynamic_shmem_limit;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attribute, int value) {
  return run_api(kSetAttribute, [&](ApiCall&) {
    KernelInfo* kernel = KernelRegistry::instance().find(func);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      const Core::Lock held = Core::instance().lock();
      kernel->dynamic_shmem_limit = value;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* func,
                                                          int block_size, size_t shmem) {
  return occupancy(kOccupancy, blocks, func, block_size, shmem);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* func,
                                                                   int block_size, size_t shmem,
                                                                   unsigned) {
  return occupancy(kOccupancyFlags, blocks, func, block_size, shmem);
}

}  // extern "C"
