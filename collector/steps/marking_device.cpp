// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/marking_device.h"

#include <atomic>

#include "collector/base/clock.h"
#include "collector/base/libraries.h"
#include "collector/steps/leading_device.h"

namespace gpuprof {
namespace {

using GetDevice = int (*)(int* device);
std::atomic<GetDevice> g_get_device{nullptr};

// A program that marks steps without CUDA is not to pay for a look at every one. In ticks, or ns.
constexpr uint64_t kBetweenLooks = 50'000'000;
std::atomic<uint64_t> g_looked{0};

}  // namespace

int32_t marking_device() {
  GetDevice get = g_get_device.load(std::memory_order_relaxed);
  if (!get) {
    const uint64_t now = now_ticks();
    if (now - g_looked.load(std::memory_order_relaxed) < kBetweenLooks) return kUnknownDevice;
    g_looked.store(now, std::memory_order_relaxed);
    get = reinterpret_cast<GetDevice>(real_symbol(loaded_driver(), "cuCtxGetDevice"));
    g_get_device.store(get, std::memory_order_relaxed);
  }
  int device = kUnknownDevice;
  return get && get(&device) == 0 ? device : kUnknownDevice;
}

}  // namespace gpuprof
