// SPDX-License-Identifier: Apache-2.0
// The record of GPU work that a launch, copy or set stands for, from what its hook kept. Any
// thread.
#pragma once

#include <cstdint>

#include "formats/core/record.h"

namespace gpuprof {

// `call`: a launch, copy or set with its correlation; `stream`: its number by the driver;
// `context`: its id. Begin and end are 0.
Record gpu_work_of(const Record& call, uint64_t stream, int device, uint64_t context);

}  // namespace gpuprof
