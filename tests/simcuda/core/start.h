// SPDX-License-Identifier: Apache-2.0
// The driver's start: by cuInit, or by the first call of a runtime, which makes it first of all.
#pragma once

namespace gpuprof::simcuda {

// Once per process. As the real one does, opens the library that CUDA_INJECTION64_PATH names and
// calls its InitializeInjection. Other threads wait; the thread itself may call in again.
void start_driver();

// Whether it has started, or does on this thread.
bool driver_is_started();

// Waits while another thread starts the driver.
void wait_for_driver();

}  // namespace gpuprof::simcuda
