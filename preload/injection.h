// SPDX-License-Identifier: Apache-2.0
// The second way in: CUDA's driver loads the library that CUDA_INJECTION64_PATH names when it
// starts (cuInit) and calls InitializeInjection. Nothing is interposed then.
#pragma once

namespace gpuprof {

// Whether this library was opened as the injected one and not preloaded. Then its constructor has
// led the calls of all that was loaded to our hooks, and what is loaded later has to be led, too.
bool is_injected();

}  // namespace gpuprof
