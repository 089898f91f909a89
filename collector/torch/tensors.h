// SPDX-License-Identifier: Apache-2.0
// What PyTorch's allocators (CUDA's caching one and the CPU's) say of each block that they give or
// take back.
#pragma once

#include <cstdint>

namespace gpuprof {

// Whether it is recorded, or kept track of, now. Any thread, at every allocation: three loads.
bool tensors_are_wanted();
// A change of an allocator's memory.
struct TensorChange {
  const void* address;
  uint64_t bytes;            // 0: not known
  uint64_t allocated, kept;  // totals of the device after it, or kTotalUnknown
  uint16_t device;  // a c10::Device: low byte its type, high byte its number, 0xff: the only one
  bool released;
};
inline constexpr uint64_t kTotalUnknown = ~uint64_t{0};
inline constexpr uint16_t kCpuDevice = 0xff00;

// Any thread, also with the allocator's lock held.
void record_tensor(const TensorChange& change);
// An allocator has no memory for `bytes` more; `device` as above. Any thread, without its lock.
void note_out_of_memory(uint64_t bytes, uint16_t device);

}  // namespace gpuprof
