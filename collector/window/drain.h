// SPDX-License-Identifier: Apache-2.0
// The drain thread: the only thread of ours. It creates the ring, attaches and detaches CUPTI,
// turns full buffers into dump chunks and writes files. All signals are blocked on it.
#pragma once

#include <cstdint>

namespace gpuprof {

enum class DrainCommand : uint32_t {
  attach = 1,   // a window is near: CUPTI on
  watch = 2,    // the window is open: poll often
  close = 4,    // the window has ended: collect, write, CUPTI off
  exit = 8,     // write what is left and end
  save = 16,    // complete the dump on disk as it stands; recording may go on
  unsave = 32,  // it goes on
  detach = 64,  // the window that was near does not come: CUPTI off
  yield = 128,  // the program wants CUPTI for itself
};

// Starts the thread and waits until the ring exists (5 s at most). False: said why; not started.
bool start_drain_thread();
void drain_request(DrainCommand command);
// It looks at once what there is to do, not only at its next look.
void drain_wake();
bool drain_is_asked_for(DrainCommand command);  // and it is not carried out yet
bool is_drain_thread();                         // the calling one
// Waits until the thread has carried out all requests but watch, detach and exit. False after the
// time-out. The thread itself waits for none, nor carries them out: what asks holds locks.
bool drain_wait_idle(uint64_t timeout_ns);
// The same for a step that a window is to begin with: 3 s at most, and not at all while the dump
// that a step has waited for in vain is still written. So a disk that hangs costs the program one
// such wait.
bool drain_wait_before_step();
// The same for the first window, but that it ends once the thread waits for the loader: a library's
// constructor may be what began the session, and what the thread waits for.
enum class FirstWait { ready, late, at_loader };
FirstWait drain_wait_before_first();
inline constexpr uint64_t kLongestStepWaitNs = 3000000000;
bool drain_wait_for(DrainCommand command, uint64_t timeout_ns);  // the same of one request
// Waits until the thread has ended, for as long as it makes progress, 10 s without any at most.
bool drain_wait_exit();
void drain_note_progress();  // on the thread itself, in a long wait
// Main has left by pthread_exit, and nobody else is left: glibc ends the process with its last
// thread.
bool only_our_threads_are_left();

}  // namespace gpuprof
