// SPDX-License-Identifier: Apache-2.0
// CUPTI's functions of one subscriber ("V2", CUPTI 13.3 and later), which the headers that we are
// built with do not have. Shapes are those of NVIDIA's cupti_callbacks.h and cupti_activity.h of
// 13.3.75; tests/wheels/cupti_layout.py compares them with the headers of the wheels.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// CUpti_SubscriberParams since 13.2: what older libraries know is its beginning.
struct CuptiV2SubscriberParams {
  size_t structSize;
  const char* subscriberName;
  char* oldSubscriberName;  // returns the name of the first subscriber
  size_t oldSubscriberSize;
  uint8_t allowMultipleSubscribers;
  uint8_t padding[7];
};
constexpr size_t kCuptiV2SubscriberParamsSize = 40;
static_assert(sizeof(CuptiV2SubscriberParams) == kCuptiV2SubscriberParamsSize);
static_assert(offsetof(CuptiV2SubscriberParams, allowMultipleSubscribers) == 32);

struct CuptiV2RequestInfo {
  size_t structSize;
};
struct CuptiV2CompleteInfo {
  size_t structSize;
  uint64_t threadId;
  void** ppRecordLayouts;  // of records with selected fields; gpuprof selects none
  size_t numRecordLayouts;
};
static_assert(sizeof(CuptiV2CompleteInfo) == 32);

// CUpti_ActivityAttribute
enum class CuptiV2Attribute : int {
  user_defined_records = 11,          // uint8_t: records with selected fields; others' use alone
  multiple_subscriber_state = 12,     // uint8_t: 0 one alone, 1 several, 2 not settled; read only
  kernel_latency_timestamps = 15,     // uint8_t; others' use alone
  cuda_event_device_timestamps = 17,  // uint8_t, of the subscriber
  multi_subscriber_graph_trace = 20,  // uint8_t, of all; before any kind is enabled
  timestamp_callback = 22,            // refused where several subscribers are allowed
};

using CuptiV2Request = void(CUPTIAPI*)(uint8_t**, size_t*, size_t*, CuptiV2RequestInfo*);
using CuptiV2Complete = void(CUPTIAPI*)(uint8_t*, size_t, size_t, CuptiV2CompleteInfo*);

// Each function's name and what follows the subscriber. A null config: records with all fields, in
// the layout of the library's version. ActivityGetEnabledKinds tells of null the kinds that any
// subscriber has enabled; with a null buffer it counts them.
// clang-format off
#define GPUPROF_CUPTI_V2_FUNCTIONS(X) \
  X(ActivityRegisterCallbacks_v2, CuptiV2Request, CuptiV2Complete) \
  X(ActivityEnable_v2, CUpti_ActivityKind, void* config) \
  X(ActivityDisable_v2, CUpti_ActivityKind, void* config) \
  X(ActivityGetNextRecord_v2, uint8_t*, size_t, CUpti_Activity**) \
  X(ActivityGetNumDroppedRecords_v2, CUcontext, uint32_t, size_t*) \
  X(ActivityGetAttribute_v2, CuptiV2Attribute, size_t*, void*) \
  X(ActivitySetAttribute_v2, CuptiV2Attribute, size_t*, void*) \
  X(ActivityGetEnabledKinds, CUpti_ActivityKind*, uint32_t*, uint32_t*) \
  X(GetTimestamp_v2, uint64_t*)
// clang-format on

struct CuptiV2Api {
#define GPUPROF_DECLARE(name, ...) CUptiResult(CUPTIAPI* name)(CUpti_SubscriberHandle, __VA_ARGS__);
  GPUPROF_CUPTI_V2_FUNCTIONS(GPUPROF_DECLARE)
#undef GPUPROF_DECLARE
};

}  // namespace gpuprof
