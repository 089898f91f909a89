// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/core/memory_map.h"

#include <sys/mman.h>

#include <cstdlib>

namespace gpuprof::simcuda {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kMapThreshold = 1 << 20;  // larger blocks get untouched pages of their own

void* take_memory(size_t bytes) {
  if (bytes >= kMapThreshold) {
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  }
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

void give_memory_back(void* p, size_t bytes) {
  if (bytes >= kMapThreshold) {
    ::munmap(p, bytes);
  } else {
    std::free(p);
  }
}

bool on_device(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged;
}

}  // namespace

MemoryMap::MemoryMap(int devices, uint64_t capacity_bytes)
    : capacity_bytes_(capacity_bytes), usage_(static_cast<size_t>(devices)) {}

void MemoryMap::count(const Allocation& a, bool add) {
  if (!on_device(a.kind)) return;
  Usage& usage = usage_[static_cast<size_t>(a.device)];
  usage.bytes += add ? a.bytes : 0 - a.bytes;
  if (a.pooled) usage.pool_bytes += add ? a.bytes : 0 - a.bytes;
}

std::optional<Allocation> MemoryMap::allocate(MemoryKind kind, size_t bytes, int device,
                                              bool pooled) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t used = usage_[static_cast<size_t>(device)].bytes;
  if (on_device(kind) && bytes > capacity_bytes_ - used) return std::nullopt;
  void* p = take_memory(bytes);
  if (p == nullptr) return std::nullopt;
  const Allocation a{reinterpret_cast<uintptr_t>(p), bytes, kind, device, false, pooled};
  allocations_[a.address] = a;
  count(a, true);
  return a;
}

std::optional<Allocation> MemoryMap::release(const void* pointer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = allocations_.find(reinterpret_cast<uintptr_t>(pointer));
  if (it == allocations_.end()) return std::nullopt;
  const Allocation a = it->second;
  allocations_.erase(it);
  count(a, false);
  if (!a.registered) give_memory_back(reinterpret_cast<void*>(a.address), a.bytes);
  return a;
}

bool MemoryMap::register_host(void* pointer, size_t bytes) {
  return adopt({reinterpret_cast<uintptr_t>(pointer), bytes, MemoryKind::kPinned, 0, true, false});
}

bool MemoryMap::map_device(void* pointer, size_t bytes, int device) {
  return adopt(
      {reinterpret_cast<uintptr_t>(pointer), bytes, MemoryKind::kDevice, device, true, false});
}

bool MemoryMap::adopt(const Allocation& a) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uintptr_t address = a.address;
  const auto next = allocations_.lower_bound(address);
  if (next != allocations_.end() && next->first < address + a.bytes) return false;
  if (next != allocations_.begin()) {
    const Allocation& before = std::prev(next)->second;
    if (before.address + before.bytes > address) return false;
  }
  allocations_[address] = a;
  count(a, true);
  return true;
}

std::optional<Allocation> MemoryMap::find(const void* pointer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return std::nullopt;
  const Allocation& a = std::prev(next)->second;
  if (address >= a.address + a.bytes) return std::nullopt;
  return a;
}

uint64_t MemoryMap::used_bytes(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return usage_[static_cast<size_t>(device)].bytes;
}

uint64_t MemoryMap::pool_used_bytes(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return usage_[static_cast<size_t>(device)].pool_bytes;
}

}  // namespace gpuprof::simcuda
