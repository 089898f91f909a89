// SPDX-License-Identifier: Apache-2.0
// The NVTX range of one call, in the domain "NCCL", with the payload that NCCL gives it
// (src/include/nvtx.h, src/include/nvtx_payload_schemas.h, src/collectives.cc and src/init.cc of
// https://github.com/NVIDIA/nccl).
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {

// SIMCUDA_NCCL_NVTX: which release's payloads there are.
enum class NvtxRelease : uint8_t {
  k2_28,  // with the communicator; what makes one says at its end which
  k2_18,  // without; what makes one says at its begin whose
  kNone,  // before 2.18: no payload
};
NvtxRelease nvtx_release();

// One entry of a payload: its name as NCCL registers it, and its NVTX type.
struct NvtxField {
  const char* name;
  uint64_t type;
  uint64_t value;
};
using NvtxFields = std::vector<NvtxField>;

// What collectives and messages say.
NvtxFields nvtx_fields(const CollectiveCall& call, uint64_t hash);
// What calls that make or end a communicator say.
NvtxFields nvtx_fields(const CommState& comm);
NvtxFields nvtx_fields_of_all(uint64_t hash, int devices);
NvtxFields nvtx_fields_of_split(const CommState& made, const CommState& parent, int color, int key);

class NvtxRange {
 public:
  NvtxRange(const char* function, const NvtxFields& fields);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  // At its end, as NCCL since 2.27.
  void say_at_end(const NvtxFields& fields) { at_end_ = fields; }

 private:
  const char* const function_;
  NvtxFields at_end_;
};

}  // namespace gpuprof::simcuda
