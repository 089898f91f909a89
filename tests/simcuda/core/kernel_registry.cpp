// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/kernel_registry.h"

namespace gpuprof::simcuda {

KernelRegistry& KernelRegistry::instance() {
  static KernelRegistry& registry = *new KernelRegistry();
  return registry;
}

void KernelRegistry::add_stub(void** module, const void* host_stub, const char* name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  KernelInfo& kernel = kernels_.emplace_back();
  kernel.name = name;
  kernel.host_stub = host_stub;
  kernel.module = module;
  by_stub_[host_stub] = &kernel;
  by_handle_[&kernel] = &kernel;
}

void KernelRegistry::remove_module(void** module) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = by_stub_.begin(); it != by_stub_.end();) {
    it = it->second->module == module ? by_stub_.erase(it) : std::next(it);
  }
  for (auto it = variables_.begin(); it != variables_.end();) {
    it = it->second.module == module ? variables_.erase(it) : std::next(it);
  }
}

KernelInfo* KernelRegistry::find(const void* stub_or_handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto it = by_stub_.find(stub_or_handle); it != by_stub_.end()) return it->second;
  if (const auto it = by_handle_.find(stub_or_handle); it != by_handle_.end()) return it->second;
  return nullptr;
}

KernelInfo* KernelRegistry::named(std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  KernelInfo*& slot = by_name_[std::string(name)];
  if (slot == nullptr) {
    slot = &kernels_.emplace_back();
    slot->name = name;
    by_handle_[slot] = slot;
  }
  return slot;
}

void KernelRegistry::add_variable(void** module, const void* host_variable, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  variables_[host_variable] = Variable{module, bytes};
}

size_t KernelRegistry::variable_bytes(const void* host_variable) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = variables_.find(host_variable);
  return it == variables_.end() ? 0 : it->second.bytes;
}

}  // namespace gpuprof::simcuda
