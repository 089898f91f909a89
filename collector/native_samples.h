// SPDX-License-Identifier: Apache-2.0
// Native frames in host samples (activity samples:native): where another thread of this process is,
// found by the thread itself in a handler of a signal that the sampling thread sends it. The signal
// is SIGURG, which does nothing where no handler is. A signal ends some system calls early (EINTR,
// signal(7)): only threads that run, or wait in a call that the kernel resumes, get one.
//
// For the sampling thread alone, unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/stacks.h"

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
// `since`: a look some microseconds ago; after one just now it takes longer. Of a thread that waits
// in a call that a signal would end, only where that is. False: it has ended, waits for a
// processor, does not take signals, or the kernel does not say what it does.
bool take_native_stack(uint32_t tid, const ThreadLook& since, NativeStack& out);

void forget_native_samples();  // in the child after fork

}  // namespace gpuprof
