// SPDX-License-Identifier: Apache-2.0
// Which thread steps run on. Thread-safe.
#pragma once

#include <cstdint>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// An index into Timeline::threads; kNone: there is no thread. A program may train on another thread
// than its first (Ray Train), and PyTorch's autograd makes most calls on one of its own. So it is,
// of those that there are, the thread
//
// with most ranges of PyTorch's optimizers;
// with most of gpuprof's own step marks, if the program makes these and not any launch;
// that waits for a data loader, if it makes no fewer calls than the first thread;
// the process's first, unless it makes less than a call a step beside one that runs Python;
// with most calls of those that run Python, as samples tell;
// with most calls.
//
// `timeline` needs its threads, their calls and waits for data, and its steps.
uint32_t find_main_thread(const Timeline& timeline);

}  // namespace gpuprof::analysis
