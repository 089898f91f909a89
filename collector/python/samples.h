// SPDX-License-Identifier: Apache-2.0
// Host samples: in a window a thread of ours reads the Python stacks of the threads that train, 200
// times a second, or as often as a hundredth of a core allows: those of the process's main thread
// and of threads that called CUDA or NCCL. No signal, no GIL, nothing done on the threads
// themselves. None before frames are known (frame_check.h).
#pragma once

#include <cstdint>

namespace gpuprof {

inline constexpr uint64_t kSamplePeriodNs = 5'000'000;

// Drain thread. The sampling thread is started with the first window.
void samples_window_begins();
void samples_window_ends();
void samples_stop();         // the thread ends, in a second at most
uint64_t samples_cpu_ns();   // of the sampling thread, in this window
uint32_t samples_threads();  // 1 while the sampling thread lives
void forget_samples();       // in the child after fork

}  // namespace gpuprof
