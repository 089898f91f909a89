// SPDX-License-Identifier: Apache-2.0
// Calls that have ended and are not recorded yet. A thread may lose its processor between the two,
// most likely to our own thread, which wakes to end the window. Not found is one whose record needs
// a new buffer, and one that waits for a lock on its way out of the library called.
#pragma once

namespace gpuprof {

// Lets each thread that has a buffer, and does not wait, run on until such a call is recorded; 50
// ms at most in all. Drain thread, after a window has ended.
void let_calls_be_recorded();

}  // namespace gpuprof
