// SPDX-License-Identifier: Apache-2.0
// Which kernels NCCL launched for which collectives.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Fills Process::collective_kernels. Calls and their work must have been joined (trace_join.h).
void join_collectives(const Trace& trace, Process& process);

}  // namespace gpuprof
