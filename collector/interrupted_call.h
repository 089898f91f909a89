// SPDX-License-Identifier: Apache-2.0
// System calls that a signal of ours has ended early. Internal to native_samples.
#pragma once

namespace gpuprof {

// In a signal handler: where the signal ended a call that waits for time or events (EINTR), and
// that says which by the instruction before it, the thread makes the call again when the handler
// returns. `context` is the handler's third argument. For signals that only reach threads that were
// running a moment before: the call has waited for microseconds then, and waits its time again.
//
// Not of calls that let signals in while they wait (ppoll and its kin): their caller wants to know.
void make_interrupted_call_again(void* context);

}  // namespace gpuprof
