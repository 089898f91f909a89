// SPDX-License-Identifier: Apache-2.0
// NVTX: ranges and marks of the program, received through NVTX's own injection interface
// (https://github.com/NVIDIA/NVTX, nvtxDetail/nvtxTypes.h). Also a step source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/record/recorder.h"
#include "collector/sources/nvtx_payload.h"

namespace gpuprof {

// ---- ranges that are calls: NCCL marks each of its API's calls

// Of one thread, while the call runs.
struct NvtxCall {
  bool open;
  bool recorded;
  bool as_range;  // its range is recorded as any other is
  ApiId api;
  uint32_t nested;  // ranges of the domain within it, still open
  TakenStack stack;
  uint64_t begin;
  const void* frame;  // address of the caller's frame where the range began
  NcclArguments given;
};
// The calling thread's; null: it has none yet, or, with `make`, there is no memory.
NvtxCall* nvtx_call(bool make);

// Who takes the ranges of a domain for calls. begin() and end() are called on the thread of the
// range and return true where it is not to be recorded as one.
struct NvtxCallDomain {
  std::string_view name;
  bool (*begin)(std::string_view message, const NvtxPayloadData* payloads, size_t count,
                const void* frame);
  bool (*end)(const NvtxPayloadData* payloads, size_t count);
};

// Size of a thread's NvtxThread, which is unmapped when the thread ends.
extern const size_t kNvtxThreadBytes;

// Body of the exported InitializeInjectionNvtx2: `get_table` is NvtxGetExportTableFunc_t; `calls`
// the same each time, and there for good. Returns 1 when attached, 0 when profiling is not wanted
// here. Called once per module that uses NVTX.
int attach_nvtx(const void* (*get_table)(unsigned), const NvtxCallDomain& calls);

// Body of the exported InitializeInjectionNvtxExtension: once per module and extension that it
// uses, after attach_nvtx(). Returns 1 for the payload extension, 0 for those not attached to.
int attach_nvtx_extension(const NvtxExtension* extension);

// Whether a window is open, or just ends: what began in it is recorded.
bool nvtx_is_wanted();

// A window is about to begin: what is open belongs to none, whether it ends or not.
void nvtx_window_begins();
// It is about to end, on the thread that met the boundary. What this thread has pushed, and any
// thread has started, is recorded up to `ticks`.
void nvtx_window_ends(uint64_t ticks);

// The calling thread is about to record ranges: what it needs for them is made now.
void prepare_nvtx_thread();

}  // namespace gpuprof
