// SPDX-License-Identifier: Apache-2.0
#include "collector/steps/marking_device.h"

#include <atomic>

#include "collector/base/libraries.h"
#include "collector/steps/leading_device.h"

namespace gpuprof {
namespace {

using GetDevice = int (*)(int* device);
std::atomic<GetDevice> g_get_device{nullptr};

}  // namespace

int32_t marking_device() {
  GetDevice get = g_get_device.load(std::memory_order_relaxed);
  if (!get) {
    get = reinterpret_cast<GetDevice>(real_symbol(loaded_driver(), "cuCtxGetDevice"));
    if (!get) get = reinterpret_cast<GetDevice>(real_symbol(loaded_cudart(), "cudaGetDevice"));
    g_get_device.store(get, std::memory_order_relaxed);
  }
  int device = kUnknownDevice;
  return get && get(&device) == 0 ? device : kUnknownDevice;
}

}  // namespace gpuprof
