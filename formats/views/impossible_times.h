// SPDX-License-Identifier: Apache-2.0
// GPU work whose recorded times cannot be right: it begins before the call that issued it
// (https://github.com/pytorch/kineto/issues/1380), or has begin and end of other work of its
// stream.
#pragma once

#include <cstdint>

#include "formats/trace/trace.h"

namespace gpuprof {

struct ImpossibleTimes {
  uint64_t works = 0;       // pieces of work that have times
  uint64_t early = 0;       // that begin before their call, beyond the tolerance
  uint64_t repeated = 0;    // that have the times of the work before, not in a CUDA graph
  int64_t earliest_ns = 0;  // by how much work begins before its call, at most

  uint64_t count() const { return early + repeated; }
};

// The tolerance is the error that the dump states (Summary.gpu_time_error_ns), at least 2 us: on
// public traces no work begins less than 4 us after its call. Work under 2 us may repeat times:
// traces in whole microseconds cut them off. Thread-safe.
ImpossibleTimes impossible_times(const Trace& trace, const Process& process);

}  // namespace gpuprof
