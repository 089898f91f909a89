// SPDX-License-Identifier: Apache-2.0
// What an outside trace says of the collective that a kernel does, in the kernel's arguments, as
// Kineto writes them for NCCL's kernels ("Collective name", "In msg nelems", "dtype", ...).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuprof::analysis {

struct CollectiveArgs {
  std::string function;  // NCCL's, where the name is known; else as in the trace
  uint64_t bytes = 0;    // what one rank gives or gets, as NCCL counts; 0: not known
};

// `args`: members of a JSON object, as EventExtra::args. Nothing where they name no collective.
std::optional<CollectiveArgs> collective_in(std::string_view args);

}  // namespace gpuprof::analysis
