// SPDX-License-Identifier: Apache-2.0
// Host samples: in a window a thread of ours reads the Python stacks of the threads that train, 200
// times a second, or as often as a hundredth of a core allows: those of the process's main thread
// and of threads that called CUDA or NCCL. That takes no signal and no GIL, and nothing is done on
// the threads themselves; it begins once frames are known (python/frame_check.h). With
// samples:native the threads' native frames are added, and threads without Python are sampled
// (native_samples.h).
#pragma once

#include <cstdint>

namespace gpuprof {

inline constexpr uint64_t kSamplePeriodNs = 5'000'000;

// Drain thread. The sampling thread is started with the first window.
void samples_window_begins();
void samples_window_ends();
void samples_stop();         // the thread ends, in a second at most
const char* samples_note();  // why there are none, where they were asked for; ""
uint64_t samples_cpu_ns();   // of the sampling thread, in this window
uint32_t samples_threads();  // 1 while the sampling thread lives

}  // namespace gpuprof
