// SPDX-License-Identifier: Apache-2.0
// Waits on a condition variable that survive a lost wakeup: glibc 2.27 to 2.40 may wake nobody
// (sourceware bug 25847).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace gpuprof::simcuda {

constexpr auto kLookAgain = std::chrono::milliseconds(50);

template <typename Done>
void wait_until_done(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                     Done&& done) {
  while (!done()) changed.wait_for(lock, kLookAgain);
}

}  // namespace gpuprof::simcuda
