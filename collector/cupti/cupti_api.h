// SPDX-License-Identifier: Apache-2.0
// The functions of libcupti that we use, looked up in the library that the process has or that lies
// beside its CUDA runtime. Nothing is linked. Types come from NVIDIA's header: drift is a compile
// error.
#pragma once

#include <cupti.h>

#include <cstddef>

namespace gpuprof {

struct CuptiApi {
// It would move these at every pass.
// clang-format off
#define GPUPROF_CUPTI_FUNCTIONS(X) \
  X(GetVersion) \
  X(GetResultString) \
  X(Subscribe) \
  X(Unsubscribe) \
  X(EnableCallback) \
  X(GetCallbackName) \
  X(ActivityRegisterCallbacks) \
  X(ActivityEnable) \
  X(ActivityDisable) \
  X(ActivityFlushAll) \
  X(ActivityGetNextRecord) \
  X(ActivityGetNumDroppedRecords) \
  X(GetTimestamp) \
  X(GetGraphNodeId)
// clang-format on
#define GPUPROF_DECLARE(name) decltype(&::cupti##name) name;
  GPUPROF_CUPTI_FUNCTIONS(GPUPROF_DECLARE)
#undef GPUPROF_DECLARE
  decltype(&::cuptiSubscribe_v2) Subscribe_v2;      // null before 13.0
  decltype(&::cuptiGetGraphExecId) GetGraphExecId;  // null before 12.3
  decltype(&::cuptiActivityEnableCudaEventDeviceTimestamps)
      ActivityEnableCudaEventDeviceTimestamps;  // null before 13.0
};

// Fills `api`. False: `why` tells what was looked for and what is missing.
bool load_cupti(const char* wanted, CuptiApi& api, char* why, size_t why_size);

}  // namespace gpuprof
