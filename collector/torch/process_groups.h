// SPDX-License-Identifier: Apache-2.0
// Which of PyTorch's process groups a collective is of. While a collective is issued, c10d keeps
// its parameters in the thread's debug information (torch::ParamCommsDebugInfo): the group's name
// and description, this process's rank in it, and its ranks in the job. It does so whether or not a
// profiler runs; the class has had these members since 2.4. Before anything is believed, one object
// that PyTorch makes of values of ours is read back. From 2.15 on NCCL's calls lie outside of that:
// collector/python/known_groups.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

struct ProcessGroup {
  static constexpr size_t kTextBytes = 64;  // with the terminator; what is longer is cut

  char name[kTextBytes];         // "0", or a hash of its ranks: the same on all of them
  char description[kTextBytes];  // "default_pg", "mesh_dp"; "undefined": the program gave none
  uint32_t size;                 // ranks
  // Its ranks in the job are first, first + stride, ...; stride 0: they are in another order, or
  // not known.
  uint32_t first, stride;
};

// The group of the collective that this thread issues. False: PyTorch issues none here, or is one
// that is not understood. Any thread; a walk over a short list.
bool current_process_group(ProcessGroup& out);

// Gives a communicator the names of the group whose collective this thread issues on it.
void name_group_of(const void* communicator);

}  // namespace gpuprof
