// SPDX-License-Identifier: Apache-2.0
// What an outside trace says of a kernel's collective, in the kernel's arguments. Kineto writes
// them for NCCL's kernels ("Collective name", "In msg nelems", "dtype", ...) as PyTorch gives them
// (saveNcclMeta() in torch/csrc/profiler/util.cpp). Of more than 30 ranks it shortens the list,
// which is no list then. A peer is a rank of the whole job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuprof::analysis {

struct CollectiveArgs {
  std::string function;  // NCCL's, where the name is known; else as in the trace
  // What one rank gives or gets, as NCCL counts; nothing: not known.
  std::optional<uint64_t> elements, bytes;
  std::string data_type;  // NCCL's name; PyTorch's where NCCL has none; empty: not known
  // Number on the group, the same on all its ranks; nothing: not known, or of a message.
  std::optional<uint64_t> sequence;
  bool uneven = false;      // the ranks' bytes may differ: it takes tensors of several sizes
  std::string group;        // its name and its ranks, as in the trace; empty: not known
  std::string label;        // group_label(); empty: not known
  uint32_t group_size = 0;  // ranks in the group; 0: not known
  int64_t source = -1, destination = -1;  // of a receive, of a send: in the job; -1: not known
};

// `args`: members of a JSON object, as EventExtra::args. Nothing where they name no collective.
std::optional<CollectiveArgs> collective_in(std::string_view args);

// What a collective has in common on all ranks that take part: of a send and its receive the two
// ranks, of others function and group. Empty: not known. `own_rank`: -1: not known.
std::string common_name(const CollectiveArgs& args, int64_t own_rank);

}  // namespace gpuprof::analysis
