// SPDX-License-Identifier: Apache-2.0
// Which captured call a node of a CUDA graph replays, by order and launch shape: CUPTI was off when
// the graph was instantiated and told no ids.
//
// The nodes of a launch, in order of their ids, are compared with the calls in order of capture:
// kind, kernel, grid and block, bytes. If all agree, and nodes that look alike ran in that order,
// each node is its call. If they do not, a node is its call only where no other node and no other
// call looks the same. A node that launches tell differently is not told.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Adds to process.graph_nodes, once GPU work is joined to its launches.
void name_replayed_nodes(const Trace& trace, Process& process);

}  // namespace gpuprof
