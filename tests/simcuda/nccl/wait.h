// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {

// Polls until `done()`; false after the timeout.
template <typename Done>
bool wait_until(Done&& done) {
  const auto deadline = now_ns() + static_cast<uint64_t>(timeout_seconds() * 1e9);
  while (!done()) {
    if (now_ns() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace gpuprof::simcuda
