// SPDX-License-Identifier: Apache-2.0
// Finds ranks that no environment variable named: those given as arguments
// (torch.multiprocessing.spawn), set by the process for itself, or inherited by all processes
// alike. NCCL's communicators know them.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Gives processes without a rank of their own the one that they have in the largest communicator of
// their collectives, and its size as the job's. Gives none if two would have the same: these
// communicators are of parts of the job. None if the job is known to be larger; none to a process
// alone. Workers of a DataLoader have their process's.
void find_ranks(Trace& trace);

}  // namespace gpuprof
