// SPDX-License-Identifier: Apache-2.0
// Calls of the program's C++ that may throw. This library has no C++ runtime, so an exception is
// caught by the one that the program has thrown it with. Else it would go through our frames, which
// nothing cleans up.
#pragma once

namespace gpuprof {

// Looks for that runtime: in the program, else in `library` and what it needs. False: it has none,
// and nothing may be called so. To be called before guarded_call().
bool guard_is_usable(void* library);

// function(argument). False: it ended by an exception. That is dropped; a thread's end or
// cancellation goes on.
bool guarded_call(void (*function)(void*), void* argument);

}  // namespace gpuprof
