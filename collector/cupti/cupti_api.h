// SPDX-License-Identifier: Apache-2.0
// The functions of libcupti that we use, looked up in the library that the process has or that lies
// beside its CUDA runtime. Nothing is linked. Types come from NVIDIA's header: drift is a compile
// error.
#pragma once

#include <cupti.h>

#include <cstddef>

#include "collector/cupti/cupti_v2.h"

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
  X(GetDeviceId) \
  X(GetGraphNodeId)
// clang-format on
#define GPUPROF_DECLARE(name) decltype(&::cupti##name) name;
  GPUPROF_CUPTI_FUNCTIONS(GPUPROF_DECLARE)
#undef GPUPROF_DECLARE
  decltype(&::cuptiSubscribe_v2) Subscribe_v2;      // null before 13.0
  decltype(&::cuptiGetGraphExecId) GetGraphExecId;  // null before 12.3
  decltype(&::cuptiActivityEnableCudaEventDeviceTimestamps)
      ActivityEnableCudaEventDeviceTimestamps;  // null before 13.0
  CuptiV2Api v2;
  bool has_v2;                          // all of them
  decltype(&::cuptiFinalize) Finalize;  // may be null
  // 13.2: where the driver does not answer (none, a stub, no GPU) any function calls itself until
  // the stack is over, in all three releases of the wheels. Before and after it is an error.
  bool dies_without_driver;
};

// The activity functions as we use them: those of the process, of which CUPTI serves one user, or
// those of our subscriber (13.3 and later).
struct CuptiActivities {
  const CuptiApi* api = nullptr;
  CUpti_SubscriberHandle subscriber = nullptr;  // null: those of the process

  CUptiResult enable(CUpti_ActivityKind kind) const {
    return subscriber ? api->v2.ActivityEnable_v2(subscriber, kind, nullptr)
                      : api->ActivityEnable(kind);
  }
  CUptiResult disable(CUpti_ActivityKind kind) const {
    return subscriber ? api->v2.ActivityDisable_v2(subscriber, kind, nullptr)
                      : api->ActivityDisable(kind);
  }
  CUptiResult next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) const {
    return subscriber ? api->v2.ActivityGetNextRecord_v2(subscriber, buffer, valid, record)
                      : api->ActivityGetNextRecord(buffer, valid, record);
  }
  CUptiResult dropped(CUcontext context, uint32_t stream, size_t* count) const {
    return subscriber ? api->v2.ActivityGetNumDroppedRecords_v2(subscriber, context, stream, count)
                      : api->ActivityGetNumDroppedRecords(context, stream, count);
  }
  CUptiResult timestamp(uint64_t* now) const {
    return subscriber ? api->v2.GetTimestamp_v2(subscriber, now) : api->GetTimestamp(now);
  }
  // Of a subscriber alone.
  CUptiResult attribute(CuptiV2Attribute which, uint8_t* value) const {
    size_t size = sizeof *value;
    return api->v2.ActivityGetAttribute_v2(subscriber, which, &size, value);
  }
  CUptiResult set_attribute(CuptiV2Attribute which, uint8_t value) const {
    size_t size = sizeof value;
    return api->v2.ActivitySetAttribute_v2(subscriber, which, &size, &value);
  }
};

// Fills `api`. False: `why` tells what was looked for and what is missing.
bool load_cupti(const char* wanted, CuptiApi& api, char* why, size_t why_size);

}  // namespace gpuprof
