// SPDX-License-Identifier: Apache-2.0
// The program's own use of CUPTI, which has room for one user: seen here, so that we can give way
// before the call and come back after the last. Calls of ours do not pass here: they go to the
// library directly.
#include <cupti.h>

#include "collector/cupti/cupti_session.h"
#include "collector/cupti/cupti_sharing.h"
#include "preload/export.h"
#include "preload/hook.h"

#define GPUPROF_CUPTI extern "C" GPUPROF_EXPORT CUptiResult CUPTIAPI
#define GPUPROF_REAL(symbol) gpuprof::Hook<gpuprof::Api::symbol, decltype(symbol)>::call_real

#define GPUPROF_FOLLOWED() gpuprof::host_cupti_is_followed()
#define GPUPROF_TAKES() const gpuprof::HostTakesCupti takes(__builtin_return_address(0))

GPUPROF_CUPTI cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                             void* user) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiSubscribe)(handle, callback, user);
  GPUPROF_TAKES();
  const auto through = gpuprof::host_subscribes(callback, user, nullptr);
  CUptiResult result = GPUPROF_REAL(cuptiSubscribe)(handle, through, user);
  if (gpuprof::cupti_makes_room(result)) {
    result = GPUPROF_REAL(cuptiSubscribe)(handle, through, user);
  }
  if (result == CUPTI_SUCCESS) gpuprof::host_has_subscribed(*handle);
  gpuprof::host_was_answered(result);
  return result;
}

// Where it allows others, we are one of them.
__attribute__((always_inline)) static inline CUptiResult join(CUpti_SubscriberHandle* handle,
                                                              CUpti_CallbackFunc callback,
                                                              void* user,
                                                              CUpti_SubscriberParams* params) {
  CUptiResult result = GPUPROF_REAL(cuptiSubscribe_v2)(handle, callback, user, params);
  const bool in_its_way = gpuprof::cupti_is_attached() && !gpuprof::cupti_serves_one();
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && in_its_way) {
    GPUPROF_TAKES();
    result = GPUPROF_REAL(cuptiSubscribe_v2)(handle, callback, user, params);
    if (gpuprof::cupti_makes_room(result)) {
      result = GPUPROF_REAL(cuptiSubscribe_v2)(handle, callback, user, params);
    }
  }
  if (result == CUPTI_SUCCESS) gpuprof::host_has_joined(*handle, params->subscriberName);
  return result;
}

GPUPROF_CUPTI cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                void* user, CUpti_SubscriberParams* params) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiSubscribe_v2)(handle, callback, user, params);
  if (gpuprof::host_wants_several(params)) return join(handle, callback, user, params);
  GPUPROF_TAKES();
  const auto through =
      gpuprof::host_subscribes(callback, user, params ? params->subscriberName : nullptr);
  CUptiResult result = GPUPROF_REAL(cuptiSubscribe_v2)(handle, through, user, params);
  if (gpuprof::cupti_makes_room(result)) {
    result = GPUPROF_REAL(cuptiSubscribe_v2)(handle, through, user, params);
  }
  if (result == CUPTI_SUCCESS) gpuprof::host_has_subscribed(*handle);
  gpuprof::host_was_answered(result);
  return result;
}

GPUPROF_CUPTI cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  if (!GPUPROF_FOLLOWED() || gpuprof::host_leaves(handle)) {
    return GPUPROF_REAL(cuptiUnsubscribe)(handle);
  }
  GPUPROF_TAKES();
  const CUptiResult result = GPUPROF_REAL(cuptiUnsubscribe)(handle);
  if (result == CUPTI_SUCCESS) gpuprof::host_has_unsubscribed();
  return result;
}

GPUPROF_CUPTI cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (GPUPROF_FOLLOWED() && !gpuprof::host_enables_callback(on != 0, handle, domain, id)) {
    return CUPTI_SUCCESS;
  }
  return GPUPROF_REAL(cuptiEnableCallback)(on, handle, domain, id);
}

GPUPROF_CUPTI cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle handle,
                                CUpti_CallbackDomain domain) {
  if (GPUPROF_FOLLOWED() && !gpuprof::host_enables_callback(on != 0, handle, domain, 0)) {
    return CUPTI_SUCCESS;
  }
  return GPUPROF_REAL(cuptiEnableDomain)(on, handle, domain);
}

GPUPROF_CUPTI cuptiEnableAllDomains(uint32_t on, CUpti_SubscriberHandle handle) {
  if (GPUPROF_FOLLOWED() && !gpuprof::host_enables_callback(on != 0, handle, 0, 0)) {
    return CUPTI_SUCCESS;
  }
  return GPUPROF_REAL(cuptiEnableAllDomains)(on, handle);
}

GPUPROF_CUPTI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                             CUpti_BuffersCallbackCompleteFunc complete) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiActivityRegisterCallbacks)(request, complete);
  GPUPROF_TAKES();
  const CUptiResult result = GPUPROF_REAL(cuptiActivityRegisterCallbacks)(
      request, gpuprof::host_registers_buffers(request, complete));
  gpuprof::host_was_answered(result);
  return result;
}

GPUPROF_CUPTI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiActivityRegisterTimestampCallback)(clock);
  GPUPROF_TAKES();
  const CUptiResult result = GPUPROF_REAL(cuptiActivityRegisterTimestampCallback)(clock);
  if (result == CUPTI_SUCCESS) gpuprof::host_registers_clock(clock);
  return result;
}

GPUPROF_CUPTI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiActivityEnable)(kind);
  GPUPROF_TAKES();
  const CUptiResult result = GPUPROF_REAL(cuptiActivityEnable)(kind);
  if (result == CUPTI_SUCCESS) gpuprof::host_has_enabled(kind, true);
  gpuprof::host_was_answered(result);
  return result;
}

GPUPROF_CUPTI cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiActivityEnableAndDump)(kind);
  GPUPROF_TAKES();
  const CUptiResult result = GPUPROF_REAL(cuptiActivityEnableAndDump)(kind);
  if (result == CUPTI_SUCCESS) gpuprof::host_has_enabled(kind, true);
  gpuprof::host_was_answered(result);
  return result;
}

// A kind that the program has not on may be one of ours: left alone.
GPUPROF_CUPTI cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiActivityDisable)(kind);
  if (!gpuprof::host_has_kind(kind)) return CUPTI_SUCCESS;
  const CUptiResult result = GPUPROF_REAL(cuptiActivityDisable)(kind);
  gpuprof::host_has_enabled(kind, false);
  return result;
}

GPUPROF_CUPTI cuptiActivityFlushAll(uint32_t flag) {
  const CUptiResult result = GPUPROF_REAL(cuptiActivityFlushAll)(flag);
  if (GPUPROF_FOLLOWED()) gpuprof::host_has_flushed();
  return result;
}

GPUPROF_CUPTI cuptiFinalize() {
  if (!GPUPROF_FOLLOWED()) return GPUPROF_REAL(cuptiFinalize)();
  GPUPROF_TAKES();
  const CUptiResult result = GPUPROF_REAL(cuptiFinalize)();
  gpuprof::host_has_finalized();
  return result;
}

namespace gpuprof {

void fill_cupti_slots() {
#define GPUPROF_ROWS_cudart(symbol)
#define GPUPROF_ROWS_cupti(symbol) GPUPROF_FILL_HAND(symbol)
#define GPUPROF_ROWS_driver(symbol)
#define GPUPROF_ROWS_nccl(symbol)
#define GPUPROF_API(library, symbol, role)
#define GPUPROF_API_AS(library, symbol, model, role)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol) GPUPROF_ROWS_##library(symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
#undef GPUPROF_ROWS_cudart
#undef GPUPROF_ROWS_cupti
#undef GPUPROF_ROWS_driver
#undef GPUPROF_ROWS_nccl
}

}  // namespace gpuprof
