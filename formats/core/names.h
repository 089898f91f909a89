// SPDX-License-Identifier: Apache-2.0
// Names and types that the profiled process and the tools both go by. Thread-safe, no allocation.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/core/ring_file.h"

namespace gpuprof {

// "buffer_full"; as `info`, reports and metrics show it.
std::string_view loss_name(Loss loss);

// Whether a range of this name is time in a data loader: "enumerate(DataLoader)#...__next__" of
// PyTorch, or a user's "dataloader..." in any case.
bool names_data_loading(std::string_view name);

// Whether a kernel of this name, mangled or not, exchanges data with other GPUs: one of NCCL's or
// RCCL's or oneCCL's, or of those libraries that do without them. Of others it is not known.
bool names_communication(std::string_view kernel);

// Whether a kernel of this name, which a collective runs, waits for no other GPU: it copies, scales
// or checks.
bool names_local_part(std::string_view kernel);

// Whether there would be no overhead of this type (own_time.h) without a profiler. The rest of
// CUPTI's is what CUDA itself takes: it compiles, loads, or waits for room in its command buffer.
bool is_profiling_overhead(uint32_t type);

}  // namespace gpuprof
