// SPDX-License-Identifier: Apache-2.0
// NCCL's calls as its NVTX ranges tell of them: those of an NCCL that is linked into the program or
// a library have no symbol that a hook could stand for. Source: src/include/nvtx.h,
// src/include/nvtx_payload_schemas.h, src/collectives.cc and src/init.cc of
// https://github.com/NVIDIA/nccl, 2.18 to 2.30.
#pragma once

#include "collector/sources/nvtx.h"

namespace gpuprof {

extern const NvtxCallDomain nccl_ranges;

}  // namespace gpuprof
