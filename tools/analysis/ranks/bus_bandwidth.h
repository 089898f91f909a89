// SPDX-License-Identifier: Apache-2.0
// What a collective moves, as nccl-tests counts it (doc/PERFORMANCE.md there, and the factors in
// src/*.cu): algorithm bandwidth S / t, bus bandwidth S / t * f. With n ranks:
//
//   function                                      S                     f
//   AllReduce                                     count                 2 (n - 1) / n
//   AllGather, ReduceScatter, AlltoAll,           count * n             (n - 1) / n
//   Gather, Scatter
//   all_to_allv (ncclAllToAllv of RCCL)           count of all peers    (n - 1) / n
//   Broadcast, Reduce, Send and Recv              count                 1
//
// A reduction within the network, whose factor is (n - 1) / (n + 1), is not told from others.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuprof::analysis {

// "ncclBroadcast" for "ncclBcast", "ncclAllReduce" for "ncclAllReduceConfig": what they do.
std::string_view plain_collective(std::string_view function);

// S in bytes. `own`: bytes of the call's count; `ranks`: n, at least 1.
uint64_t collective_bytes(std::string_view function, uint64_t own, uint32_t ranks);

// Whether S is of all ranks, so that nobody knows it who does not know n.
bool counts_each_rank(std::string_view function);

// f.
double bus_factor(std::string_view function, uint32_t ranks);

// Whether the sizes of its ranks may differ: PyTorch's all_to_allv sends each peer a length of its
// own (ProcessGroupNCCL::alltoall_base). S is then the mean over the ranks.
bool is_uneven(std::string_view function);

// Whether every rank needs all others before it can leave, so that its own duration beyond the
// shortest is waiting. With a root, or between two, a rank may leave early.
bool leaves_together(std::string_view function);

}  // namespace gpuprof::analysis
