// SPDX-License-Identifier: Apache-2.0
// NVTX: ranges and marks of the program, received through NVTX's own injection interface
// (https://github.com/NVIDIA/NVTX, nvtxDetail/nvtxTypes.h). Also a step source.
#pragma once

#include <cstddef>

namespace gpuprof {

// Size of a thread's NvtxThread, which is unmapped when the thread ends.
extern const size_t kNvtxThreadBytes;

// Body of the exported InitializeInjectionNvtx2: `get_table` is NvtxGetExportTableFunc_t.
// Returns 1 when attached, 0 when profiling is not wanted here. Called once per module that uses
// NVTX.
int attach_nvtx(const void* (*get_table)(unsigned));

// The calling thread is about to record ranges: what it needs for them is made now.
void prepare_nvtx_thread();

}  // namespace gpuprof
