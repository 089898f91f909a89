// SPDX-License-Identifier: Apache-2.0
// Native frames in host samples (activity samples:native): where another thread of this process is,
// found by the thread itself in a handler of a signal that the sampling thread sends it. The signal
// is SIGURG, which does nothing where no handler is. A signal ends some system calls early, or
// makes them do less than they were asked for (signal(7)): only a thread that runs gets one. One
// that enters such a call in the microseconds until it comes may see EINTR.
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

// False: a signal would wait for this thread to let it in, which might be a call that waits for
// just that.
bool takes_native_signal(uint32_t tid);
// How much a thread had run at a moment.
struct ThreadLook {
  uint64_t cpu_ns, time_ns;
};
ThreadLook look_at_thread(uint32_t tid);
// `since`: a look some microseconds ago; after one just now it takes longer. Of a thread that waits
// only where that is: frames[0]. False: it has ended or waits for a processor, or did not answer.
bool take_native_stack(uint32_t tid, const ThreadLook& since, NativeStack& out);

void forget_native_samples();  // in the child after fork

}  // namespace gpuprof
