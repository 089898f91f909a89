// SPDX-License-Identifier: Apache-2.0
// Whether CUDA has started in this process. Only the program may start it: a child that is forked
// later cannot use CUDA any more, and a later CUDA_VISIBLE_DEVICES says nothing. So nobody here
// asks the runtime or CUPTI anything before. Functions of the driver's alone never start it: until
// cuInit they return CUDA_ERROR_NOT_INITIALIZED (CUDA driver API, cuInit).
#pragma once

namespace gpuprof {

// Whether cuInit is over and there is a GPU. A thread inside of cuInit, which loads this library,
// is not waited for: it may wait for us. Any thread.
bool driver_has_started();
// The program makes a call of the CUDA runtime, or one of NCCL's, which starts the driver if
// nothing has.
void note_runtime_call();
// Either: CUPTI starts nothing then that the program does not start itself.
bool cuda_is_in_use();

}  // namespace gpuprof
