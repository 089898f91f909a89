// SPDX-License-Identifier: Apache-2.0
// Host samples: in a window a thread of ours reads the Python stacks of the threads that train. It
// does so 200 times a second, or as often as a hundredth of a core allows. These threads are the
// main thread and those that called CUDA or NCCL. It takes no signal and no GIL, and does nothing
// on the threads themselves. It begins once frames are known (python/frame_check.h). With
// samples:native it adds native frames, and samples threads without Python (native_samples.h).
#pragma once

#include <cstdint>

namespace gpuprof {

inline constexpr uint64_t kSamplePeriodNs = 5'000'000;
// CPU time that a window's first samples may take, whose names are new, beside the hundredth.
inline constexpr uint64_t kFirstSamplesNs = 2'000'000;

// Drain thread. The sampling thread is started with the first window.
void samples_window_begins();
void samples_window_ends();
void samples_stop();         // the thread ends, in a second at most
const char* samples_note();  // why there are none, where they were asked for; ""
uint64_t samples_cpu_ns();   // of the sampling thread, in this window
uint32_t samples_threads();  // 1 while the sampling thread lives

}  // namespace gpuprof
