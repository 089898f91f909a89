// SPDX-License-Identifier: Apache-2.0
// Host stubs and their kernels, as __cudaRegisterFunction announces them.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpuprof::simcuda {

// Its address serves as cudaKernel_t and cudaFunction_t. Lives as long as the process.
struct KernelInfo {
  std::string name;  // mangled
  const void* host_stub = nullptr;
  void** module = nullptr;
  int dynamic_shmem_limit = 48 * 1024;
};

class KernelRegistry {
 public:
  static KernelRegistry& instance();

  void add_stub(void** module, const void* host_stub, const char* name);
  void remove_module(void** module);

  // The kernel of a host stub, or of a handle that this registry gave out; nullptr if neither.
  KernelInfo* find(const void* stub_or_handle);

  // A kernel with no host stub; the same name gives the same kernel.
  KernelInfo* named(std::string_view name);

  void add_variable(void** module, const void* host_variable, size_t bytes);
  // Bytes of a registered device variable, or 0.
  size_t variable_bytes(const void* host_variable);

 private:
  struct Variable {
    void** module;
    size_t bytes;
  };
  std::mutex mutex_;
  std::deque<KernelInfo> kernels_;
  std::unordered_map<const void*, KernelInfo*> by_stub_;
  std::unordered_map<const void*, KernelInfo*> by_handle_;
  std::unordered_map<std::string, KernelInfo*> by_name_;
  std::unordered_map<const void*, Variable> variables_;
};

}  // namespace gpuprof::simcuda
