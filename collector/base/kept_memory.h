// SPDX-License-Identifier: Apache-2.0
// Memory for what is kept until the process ends. It comes from the kernel: what of malloc's only
// we point at is a leak to a program that looks for its own.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// Not thread-safe. A child goes on with its copy.
class KeptMemory {
 public:
  // Aligned to 16 bytes. Null: there is no memory.
  void* take(size_t bytes) {
    bytes = (bytes + 15) & ~size_t{15};
    if (bytes > kBlockBytes / 4) return map(bytes);
    if (bytes > left_) {
      auto* const block = static_cast<uint8_t*>(map(kBlockBytes));
      if (!block) return nullptr;
      next_ = block;
      left_ = kBlockBytes;
    }
    uint8_t* const taken = next_;
    next_ += bytes;
    left_ -= bytes;
    return taken;
  }

 private:
  static constexpr size_t kBlockBytes = 64 * 1024;
  static void* map(size_t bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  uint8_t* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace gpuprof
