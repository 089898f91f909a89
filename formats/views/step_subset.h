// SPDX-License-Identifier: Apache-2.0
// A trace cut down to some of its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "formats/trace/trace.h"

namespace gpuprof {

// Which step an event belongs to:
// - a call to the one in which the outermost call around it began;
// - GPU work, and whatever else a call caused, to the call's;
// - GPU work without a recorded call to that of the work before it on its stream, a range on a
//   stream to that of the work after it;
// - all else (ranges, operators, samples, the above where nothing is known) to the one in which it
//   began.
// What is in no step belongs to two steps that follow each other, by number or because they touch:
// it is kept where both are. (Between torch.profiler's steps there are some microseconds.)
//
// An event is kept whole: it may end after the last step that is kept. References to what is not
// kept become none: partners, operators, collectives and their kernels, forward and backward, the
// parents of Python calls. Stretches begin with the memory that was allocated then; counters with
// the value that they had. Of GPU memory's list the moment `window_begins` is that of the first
// step.
//
// `wanted` is asked for each step of each window. Windows without such a step are taken out. Those
// of a data loader's worker have the steps of the same window of the process that it loads for.
// Returns how many processes, however many windows each has, have none of these steps.
size_t keep_steps(Trace& trace, const std::function<bool(uint64_t step)>& wanted);

}  // namespace gpuprof
