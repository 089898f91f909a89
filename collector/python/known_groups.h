// SPDX-License-Identifier: Apache-2.0
// PyTorch's process groups by its own books (_pg_names and _pg_group_ranks of
// torch.distributed.distributed_c10d): what collector/torch/process_groups.h cannot tell. From 2.15
// on c10d calls NCCL outside of what it says of a collective; the communicator has the group's
// name.
#pragma once

#include "collector/python/python_api.h"

namespace gpuprof {

// Gives communicators that have a group's name its description and ranks, if any are new. With the
// GIL, on a thread of the program's.
void learn_process_groups(const PythonApi& py);

}  // namespace gpuprof
