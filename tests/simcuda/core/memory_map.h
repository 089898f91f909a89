// SPDX-License-Identifier: Apache-2.0
// The allocations that the simulated runtime knows. "Device" memory is host memory, so that copies
// and sets of small programs give sensible results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/simcuda/core/port.h"

namespace gpuprof::simcuda {

struct Allocation {
  uintptr_t address = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  bool registered = false;  // not ours to free: pinned by cudaHostRegister, or mapped
  bool pooled = false;
};

class MemoryMap {
 public:
  MemoryMap(int devices, uint64_t capacity_bytes);

  // nullopt when the device's capacity would be exceeded or the host has no memory.
  std::optional<Allocation> allocate(MemoryKind kind, size_t bytes, int device, bool pooled);

  // Forgets (and frees, unless registered) the allocation that starts at `pointer`.
  std::optional<Allocation> release(const void* pointer);

  // False when the range is already known.
  bool register_host(void* pointer, size_t bytes);

  // Virtual memory of the driver: the program's own addresses, backed by this device's memory.
  bool map_device(void* pointer, size_t bytes, int device);

  // The allocation that holds `pointer`, if any. Ordinary host memory is not known.
  std::optional<Allocation> find(const void* pointer);

  uint64_t used_bytes(int device);
  uint64_t pool_used_bytes(int device);
  uint64_t capacity_bytes() const { return capacity_bytes_; }

 private:
  struct Usage {
    uint64_t bytes = 0;
    uint64_t pool_bytes = 0;
  };
  void count(const Allocation& a, bool add);
  bool adopt(const Allocation& a);

  std::mutex mutex_;
  const uint64_t capacity_bytes_;
  std::vector<Usage> usage_;
  std::map<uintptr_t, Allocation> allocations_;
};

}  // namespace gpuprof::simcuda
