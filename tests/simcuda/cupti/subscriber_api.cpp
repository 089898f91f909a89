// SPDX-License-Identifier: Apache-2.0
// CUPTI 13.3's activity functions of one subscriber (cupti_activity.h of 13.3.75, "_v2"). Only the
// library in lib13_3 has them. Their symbols are named apart from the declarations, which newer
// headers than those we are built with have, too.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "collector/cupti/cupti_v2.h"
#include "tests/simcuda/cupti/activity_api.h"
#include "tests/simcuda/cupti/session.h"

namespace gpuprof::simcuda {
namespace {

// The subscriber's activities, once functions of this kind may be called.
CUptiResult begin_reading(CUpti_SubscriberHandle handle, Client*& out) {
  Session& session = Session::instance();
  if (session.subscriber(handle) == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (const CUptiResult r = session.use(Scope::subscriber); r != CUPTI_SUCCESS) return r;
  out = session.activities(handle);
  return CUPTI_SUCCESS;
}

CUptiResult begin(CUpti_SubscriberHandle handle, Client*& out) {
  const CUptiResult r = start();
  return r != CUPTI_SUCCESS ? r : begin_reading(handle, out);
}

CUptiResult set_kind(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind, bool on, bool dump,
                     const void* config = nullptr) {
  Client* client = nullptr;
  if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  if (const CUptiResult r = check_kind(kind); r != CUPTI_SUCCESS) return r;
  const auto* const chosen = static_cast<const ActivityConfig*>(config);
  if (chosen != nullptr && chosen->fieldSelection.numFields != 0) {
    if (!client->selects_fields.load()) return CUPTI_ERROR_INVALID_OPERATION;
    if (!client->recorder.selected_fields().select(kind, *chosen)) {
      return CUPTI_ERROR_INVALID_PARAMETER;
    }
  }
  if (on && (is_refused("cuptiActivityEnable_v2") || kind == switches().refused_kind)) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  const bool was_on = client->wants(kind);
  Session::instance().enable(*client, kind, on);
  if (dump && was_on) Session::instance().dump_existing(*client, kind);
  return CUPTI_SUCCESS;
}

CUptiResult set_attribute(Client& client, CuptiV2Attribute which, uint8_t value) {
  switch (which) {
    // "cannot be set by cuptiActivitySetAttribute or cuptiActivitySetAttribute_v2"
    case CuptiV2Attribute::multiple_subscriber_state: return CUPTI_ERROR_INVALID_PARAMETER;
    case CuptiV2Attribute::cuda_event_device_timestamps:
      client.event_times = value != 0;
      return CUPTI_SUCCESS;
    // "must be set before enabling any CUPTI activity kinds"
    case CuptiV2Attribute::user_defined_records:
      if (value != 0 && client.wanted.load() != 0) return CUPTI_ERROR_INVALID_OPERATION;
      client.selects_fields = value != 0;
      return CUPTI_SUCCESS;
    case CuptiV2Attribute::kernel_latency_timestamps:
      return CUPTI_SUCCESS;  // kernels' `queued` stays 0
    // "must be set before enabling any activity kind by any subscriber"; with which error it is
    // refused later is not told.
    case CuptiV2Attribute::multi_subscriber_graph_trace:
      return Session::instance().time_whole_graphs(value != 0) ? CUPTI_SUCCESS
                                                               : CUPTI_ERROR_NOT_COMPATIBLE;
    // "cannot be used when multiple subscribers are allowed"; which error that gives is not told.
    case CuptiV2Attribute::timestamp_callback: return CUPTI_ERROR_NOT_SUPPORTED;
  }
  return CUPTI_SUCCESS;
}

uint8_t get_attribute(const Client& client, CuptiV2Attribute which) {
  switch (which) {
    case CuptiV2Attribute::multiple_subscriber_state: return Session::instance().several_state();
    case CuptiV2Attribute::cuda_event_device_timestamps: return client.event_times.load() ? 1 : 0;
    case CuptiV2Attribute::multi_subscriber_graph_trace:
      return Session::instance().times_whole_graphs() ? 1 : 0;
    case CuptiV2Attribute::user_defined_records: return client.selects_fields.load() ? 1 : 0;
    case CuptiV2Attribute::kernel_latency_timestamps:
    case CuptiV2Attribute::timestamp_callback: break;
  }
  return 0;
}

}  // namespace

#define SIMCUDA_V2(name, ...) \
  __attribute__((visibility("default"))) CUptiResult name(__VA_ARGS__) __asm__("cupti" #name)

SIMCUDA_V2(ActivityRegisterCallbacks_v2, CUpti_SubscriberHandle, CuptiV2Request, CuptiV2Complete);
SIMCUDA_V2(ActivityEnable_v2, CUpti_SubscriberHandle, CUpti_ActivityKind, void*);
SIMCUDA_V2(ActivityEnableAndDump_v2, CUpti_SubscriberHandle, CUpti_ActivityKind, void*);
SIMCUDA_V2(ActivityDisable_v2, CUpti_SubscriberHandle, CUpti_ActivityKind, void*);
SIMCUDA_V2(ActivityGetNextRecord_v2, CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**);
SIMCUDA_V2(ActivityGetNumDroppedRecords_v2, CUpti_SubscriberHandle, CUcontext, uint32_t, size_t*);
SIMCUDA_V2(ActivityGetAttribute_v2, CUpti_SubscriberHandle, CuptiV2Attribute, size_t*, void*);
SIMCUDA_V2(ActivitySetAttribute_v2, CUpti_SubscriberHandle, CuptiV2Attribute, size_t*, void*);
SIMCUDA_V2(ActivityGetEnabledKinds, CUpti_SubscriberHandle, CUpti_ActivityKind*, uint32_t*,
           uint32_t*);
SIMCUDA_V2(ActivityPushExternalCorrelationId_v2, CUpti_SubscriberHandle,
           CUpti_ExternalCorrelationKind, uint64_t);
SIMCUDA_V2(ActivityPopExternalCorrelationId_v2, CUpti_SubscriberHandle,
           CUpti_ExternalCorrelationKind, uint64_t*);
SIMCUDA_V2(ActivityEnableRuntimeApi_v2, CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t);
SIMCUDA_V2(ActivityEnableDriverApi_v2, CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t);
SIMCUDA_V2(GetTimestamp_v2, CUpti_SubscriberHandle, uint64_t*);

CUptiResult ActivityRegisterCallbacks_v2(CUpti_SubscriberHandle handle, CuptiV2Request request,
                                         CuptiV2Complete complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (is_refused("cuptiActivityRegisterCallbacks_v2")) return CUPTI_ERROR_NOT_COMPATIBLE;
  Client* client = nullptr;
  if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  static std::atomic<bool> registered{false};
  if (registered.exchange(true) && switches().v2_registers_once) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  client->recorder.set_callbacks(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult ActivityEnable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                              void* config) {
  return set_kind(handle, kind, true, false, config);
}

CUptiResult ActivityEnableAndDump_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                                     void* config) {
  return set_kind(handle, kind, true, true, config);
}

CUptiResult ActivityDisable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind, void*) {
  return set_kind(handle, kind, false, false);
}

CUptiResult ActivityGetNextRecord_v2(CUpti_SubscriberHandle handle, uint8_t* buffer, size_t valid,
                                     CUpti_Activity** record) {
  Client* client = nullptr;
  const CUptiResult r = begin_reading(handle, client);
  if (r != CUPTI_SUCCESS) return r;
  return next_record(buffer, valid, record, &client->recorder.selected_fields());
}

CUptiResult ActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle handle, CUcontext, uint32_t,
                                            size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Client* client = nullptr;
  if (const CUptiResult r = begin_reading(handle, client); r != CUPTI_SUCCESS) return r;
  *dropped = client->recorder.take_dropped();
  return CUPTI_SUCCESS;
}

CUptiResult ActivityGetAttribute_v2(CUpti_SubscriberHandle handle, CuptiV2Attribute which,
                                    size_t* size, void* value) {
  if (size == nullptr || value == nullptr || *size == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  // What is of all can be asked for before subscribing (CUPTI guide, 2.4.6).
  Client none;
  Client* client = &none;
  if (handle != nullptr) {
    if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  }
  const uint8_t answer = get_attribute(*client, which);
  std::memcpy(value, &answer, sizeof answer);
  return CUPTI_SUCCESS;
}

CUptiResult ActivitySetAttribute_v2(CUpti_SubscriberHandle handle, CuptiV2Attribute which,
                                    size_t* size, void* value) {
  if (size == nullptr || value == nullptr || *size == 0) return CUPTI_ERROR_INVALID_PARAMETER;
  Client* client = nullptr;
  if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  return set_attribute(*client, which, *static_cast<const uint8_t*>(value));
}

CUptiResult ActivityGetEnabledKinds(CUpti_SubscriberHandle handle, CUpti_ActivityKind* buffer,
                                    uint32_t* size, uint32_t* count) {
  if (count == nullptr || (buffer != nullptr && size == nullptr)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  uint64_t kinds = Session::instance().wanted_by_all();
  if (handle != nullptr) {
    Client* client = nullptr;
    if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
    kinds = client->wanted.load();
  }
  *count = static_cast<uint32_t>(std::popcount(kinds));
  for (uint32_t i = 0; buffer != nullptr && i < *size && kinds != 0; ++i, kinds &= kinds - 1) {
    buffer[i] = static_cast<CUpti_ActivityKind>(std::countr_zero(kinds));
  }
  return CUPTI_SUCCESS;
}

CUptiResult ActivityPushExternalCorrelationId_v2(CUpti_SubscriberHandle handle,
                                                 CUpti_ExternalCorrelationKind kind, uint64_t id) {
  Client* client = nullptr;
  if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  if (!valid_external(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  push_external_id(*client, kind, id);
  return CUPTI_SUCCESS;
}

CUptiResult ActivityPopExternalCorrelationId_v2(CUpti_SubscriberHandle handle,
                                                CUpti_ExternalCorrelationKind kind,
                                                uint64_t* last) {
  Client* client = nullptr;
  if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  if (!valid_external(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  return pop_external_id(*client, kind, last) ? CUPTI_SUCCESS : CUPTI_ERROR_QUEUE_EMPTY;
}

static CUptiResult enable_api(CUpti_SubscriberHandle handle, bool driver, CUpti_CallbackId id,
                              uint8_t on) {
  Client* client = nullptr;
  if (const CUptiResult r = begin(handle, client); r != CUPTI_SUCCESS) return r;
  if (id >= (driver ? kDriverCallbacks : kRuntimeCallbacks)) return CUPTI_ERROR_INVALID_PARAMETER;
  Session::instance().enable_api(*client, driver, id, on != 0);
  return CUPTI_SUCCESS;
}

CUptiResult ActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle handle, CUpti_CallbackId id,
                                        uint8_t on) {
  return enable_api(handle, false, id, on);
}

CUptiResult ActivityEnableDriverApi_v2(CUpti_SubscriberHandle handle, CUpti_CallbackId id,
                                       uint8_t on) {
  return enable_api(handle, true, id, on);
}

// "In CUDA 13.3, this will fall back to cuptiGetTimestamp()."
CUptiResult GetTimestamp_v2(CUpti_SubscriberHandle handle, uint64_t* timestamp) {
  Session& session = Session::instance();
  if (timestamp == nullptr || session.subscriber(handle) == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  *timestamp = session.recorder().clock().client_now();
  return CUPTI_SUCCESS;
}

}  // namespace gpuprof::simcuda
