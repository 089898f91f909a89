// SPDX-License-Identifier: Apache-2.0
// Takes CUPTI down after a window (GPUPROF_CUPTI_TEARDOWN=1), since once it was attached it costs
// each CUDA call something until the process ends: 10 to 20 % of a training
// (https://github.com/pytorch/pytorch/pull/146604), 1.6 us a launch on an H200.
//
// cuptiFinalize is for the whole process, and may meet calls of other threads. NVIDIA's guide wants
// it called from the exit of a CUDA call ("Dynamic attach and detach"), and so does Kineto
// (https://github.com/pytorch/kineto/pull/686). Before 12.6 it crashes with CUDA graphs. With CUPTI
// 13.0.1 a program whose graph had just been launched failed after it (cudaErrorLaunchFailure, 4 of
// 4 on an H200).
#pragma once

#include <atomic>
#include <cstdint>

namespace gpuprof {

enum class Teardown : uint8_t { idle, wanted, running, done };
inline constinit std::atomic<Teardown> g_teardown{Teardown::idle};
// No call is to be recorded: it is asked for, under way, or was just done. Any thread.
inline bool teardown_is_near() {
  return g_teardown.load(std::memory_order_relaxed) != Teardown::idle;
}

// Drain thread. Whether it is asked for, this CUPTI bears it, the program never used CUPTI, and no
// executable graph lives that hooks have seen.
bool teardown_is_possible();
// Drain thread, while our subscriber's callbacks are on, all kinds off and records flushed. Waits
// until a call of the program's has taken CUPTI down, 1 s at most. False: none did, and CUPTI is as
// it was; none came, the process ends, or the program asks for CUPTI.
bool tear_down_cupti();
// In the subscriber's callback, at the exit of a call that is in no other. Not while a stream is
// captured, or an executable graph lives.
void on_exit_before_teardown();

void forget_teardown();  // in the child after fork

}  // namespace gpuprof
