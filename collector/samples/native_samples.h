// SPDX-License-Identifier: Apache-2.0
// Native frames in host samples (activity samples:native). A thread finds its own frames,
// in the handler of a signal that the sampling thread sends it. The signal is SIGURG,
// which does nothing where no handler is. A signal ends some system calls early, or makes
// them do less than asked (signal(7)). So only a thread that runs, or waits for a
// processor, gets one. One that enters such a call in the microseconds until it comes may
// see EINTR.
//
// For the sampling thread alone, unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/stacks/stacks.h"

namespace gpuprof {

struct NativeStack {
  size_t count;
  uint64_t frames[kMaxStackFrames];  // return addresses, innermost first; of a thread that runs the
                                     // first is one past where it is
  uint64_t stack_pointers[kMaxStackFrames];  // as unwind() gives them
};

// Drain thread. Says in one line why there will be none, if so.
void native_samples_window_begins();
void native_samples_window_ends();
bool native_samples_on();
const char* native_samples_note();

// How much a thread had run at a moment.
struct ThreadLook {
  uint64_t cpu_ns, time_ns;
};
ThreadLook look_at_thread(uint32_t tid);

// What the kernel counts of a thread, from when it last began to wait or earlier; all 0 before the
// first reading, which costs some 15 us as any.
struct ThreadCounts {
  uint64_t waits;       // how often it had begun to wait
  uint64_t cpu_ns;      // how much it had run, at a moment after that
  bool lets_signal_in;  // if not, a signal would wait, perhaps in a call that waits for just that
};
bool read_thread_counts(uint32_t tid, ThreadCounts& counts);

// `since`: a look some microseconds ago; after one just now it takes longer. `counts` are read
// again where the thread is on no processor. Of a thread that waits only where that is: frames[0].
// False: it has ended or was just woken, or did not answer.
bool take_native_stack(uint32_t tid, const ThreadLook& since, ThreadCounts& counts,
                       NativeStack& out);

}  // namespace gpuprof
