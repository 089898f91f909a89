// SPDX-License-Identifier: Apache-2.0
// Ranks that no environment variable named, as where they are arguments
// (torch.multiprocessing.spawn) or set by the process for itself, or that all processes have
// inherited: NCCL's communicators know them.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Gives processes without a rank of their own the one that they have in the largest communicator of
// their collectives, and its size as the job's. None of them, if two would have the same: then
// these communicators are of parts of the job; nor where it is known to be larger, nor a process
// alone, of which that cannot be told. Workers of a DataLoader have their process's.
void find_ranks(Trace& trace);

}  // namespace gpuprof
