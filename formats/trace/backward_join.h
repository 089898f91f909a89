// SPDX-License-Identifier: Apache-2.0
// Which forward operator an autograd node is of.
//
// A node has the sequence number of the operator that made it. Each thread counts for itself
// (thread_local in PyTorch's aten/src/ATen/SequenceNumber.cpp), so that a number alone may be of
// operators of several threads. PyTorch's profiler takes the thread that made the node with it
// (getForwardThreadKey in torch/csrc/profiler/collection.cpp); records do not have that. So:
//
//   - one thread has the number: that operator
//   - the node's own thread has it, too, in an autograd node that the node is in as well: reentrant
//     checkpointing, which runs the pass of what it ran again. The own thread's operator
//   - the node's own thread has it, too, in a node that is over: checkpointing that ran an operator
//     again to have its values alone. Another thread's operator
//   - else, and where several other threads have it (replicas of DataParallel): not known
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Forward operator and node, in order of the nodes' begin. Of a thread's operators with one number
// it is the innermost, which began last before the node did. An operator that has a node already
// gives way to another thread's that has none.
std::vector<std::pair<EventIndex, EventIndex>> backward_pairs(const Trace& trace,
                                                              const Process& process);

}  // namespace gpuprof
