// SPDX-License-Identifier: Apache-2.0
// What belongs together within one process: calls and the GPU work they caused, stream handles and
// CUPTI streams, collectives and their kernels.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Fills Event::partner and next_sibling (by correlation id), Process::streams and
// Process::collective_kernels. The events must be in their final order.
void join_process(const Trace& trace, Process& process);

}  // namespace gpuprof
