// SPDX-License-Identifier: Apache-2.0
// One call of an exported nccl function: its NVTX range (domain "NCCL") and its line of truth.
#pragma once

#include <nccl.h>

#include <cstdint>

#include "tests/simcuda/nccl/comm.h"
#include "tests/simcuda/nccl/nvtx_range.h"

namespace gpuprof::simcuda {

class ApiScope {
 public:
  explicit ApiScope(const char* name, const NvtxFields& fields = {});
  ~ApiScope();
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;

  // Makes the line say what was called, on which communicator and stream.
  void describe(const CollectiveCall& call, ncclComm_t handle, const CommState& comm,
                cudaStream_t stream, uint64_t sequence);
  // Makes the range say at its end which communicator was made.
  void made(const NvtxFields& fields) { range_.say_at_end(fields); }
  ncclResult_t finish(ncclResult_t result);

 private:
  void write() const;

  const char* const name_;
  const uint64_t begin_;
  NvtxRange range_;
  const bool outermost_;  // ncclBcast calls ncclBroadcast: one line, for what the program called
  ncclResult_t result_ = ncclSuccess;
  bool described_ = false;
  CollectiveCall call_;
  ncclComm_t handle_ = nullptr;
  uint64_t hash_ = 0;
  int rank_ = 0;
  int ranks_ = 0;
  uint64_t sequence_ = 0;
  uint32_t stream_id_ = 0;
};

}  // namespace gpuprof::simcuda
