// SPDX-License-Identifier: Apache-2.0
// Steps inside a window that has none of its own: the program brackets what is to be recorded
// (cudaProfilerStart, cudaProfilerStop), or the window holds no whole step. They are found by the
// next best mark among the recorded events: a range named as steps are, the end of PyTorch's
// optimizers, an inference engine's range, a CUDA graph launched again. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

struct NestedSteps {
  std::vector<Step> steps;     // in order; numbered from 0, or as their ranges are
  std::string source;          // as GPUPROF_STEP names it; empty: no steps
  bool one_iteration = false;  // no steps, since the window holds one mark of one
};

// At least two steps, or none. `timeline` needs its calls, threads and streams. A stretch between
// the window's edge and a mark is a step, too, if about as much is launched in it as in the others.
NestedSteps find_nested_steps(const Timeline& timeline);

}  // namespace gpuprof::analysis
