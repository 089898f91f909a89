// SPDX-License-Identifier: Apache-2.0
// The ABI between nvcc's host code and the runtime: modules, stubs, variables, call configurations.
#include <cupti.h>

#include "tests/simcuda/core/simcuda.h"
#include "tests/simcuda/core/truth_log.h"
#include "tests/simcuda/cudart/entry_points.h"

using namespace gpuprof::simcuda;

extern "C" {

// Registration runs in constructors, before main; the real runtime makes no callbacks here.
void** __cudaRegisterFatBinary(void* fat_cubin) { return new void*(fat_cubin); }

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  if (handle == nullptr) return;
  KernelRegistry::instance().remove_module(handle);
  delete handle;
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                            const char* device_name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  KernelRegistry::instance().add_stub(handle, host_function, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char*, int, size_t bytes,
                       int, int) {
  KernelRegistry::instance().add_variable(handle, host_variable, bytes);
}

void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char*, int,
                              size_t bytes, int, int) {
  if (*host_variable == nullptr) {
    const auto memory = Core::instance().memory().allocate(MemoryKind::kManaged, bytes, 0, false);
    if (memory) *host_variable = reinterpret_cast<void*>(memory->address);
  }
  KernelRegistry::instance().add_variable(handle, host_variable, bytes);
}

char __cudaInitModule(void**) { return 1; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shmem, CUstream_st* stream) {
  thread_state().configurations.push_back(LaunchConfiguration{grid, block, shmem, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shmem, void* stream) {
  auto& pushed = thread_state().configurations;
  if (pushed.empty()) return cudaErrorMissingConfiguration;
  const LaunchConfiguration top = pushed.back();
  pushed.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shmem = top.shmem;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  KernelInfo* found = KernelRegistry::instance().find(host_function);
  if (found == nullptr) return cudaErrorInvalidDeviceFunction;
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return __cudaGetKernel(kernel, host_function);
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  const KernelInfo* kernel = KernelRegistry::instance().find(func);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  *name = kernel->name.c_str();
  return cudaSuccess;
}

const void* simcuda_register_kernel(const char* name) {
  return name == nullptr ? nullptr : KernelRegistry::instance().named(name);
}

void simcuda_truth_note(const char* json_line) {
  if (json_line != nullptr) TruthLog::instance().append(json_line);
}

}  // extern "C"
