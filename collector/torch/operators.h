// SPDX-License-Identifier: Apache-2.0
// PyTorch's operators, autograd nodes and record_function ranges in the window: a record each,
// written when it ends.
#pragma once

#include <cstdint>

namespace gpuprof {

// Before a window, on the drain thread.
void operators_prepare();
// When a window begins, on the thread that met the boundary; says so once where PyTorch is one we
// do not know.
void operators_begin();
// No more of them in this window; those that run now are recorded as they end. Any thread.
void stop_recording_operators();
// When it ends; what is still running on this thread is recorded up to `ticks`.
void operators_end(uint64_t ticks);

}  // namespace gpuprof
