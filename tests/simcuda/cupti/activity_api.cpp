// SPDX-License-Identifier: Apache-2.0
// CUPTI's exported functions: subscribing and activity recording.
#include "tests/simcuda/cupti/activity_api.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cupti/callbacks.h"
#include "tests/simcuda/cupti/session.h"

namespace gpuprof::simcuda {

void die_without_driver() {
  if (!switches().dies_without_driver) return;
  Session::instance().attach();
  const SimCore* const core = Session::instance().core();
  if (core != nullptr && core->is_started()) return;
  ::signal(SIGSEGV, SIG_DFL);
  *static_cast<volatile int*>(nullptr) = 0;  // a thread can block a signal that is raised
}

CUptiResult start() {
  die_without_driver();
  if (switches().no_driver) return CUPTI_ERROR_UNKNOWN;
  Session::instance().attach();
  if (SimCore* core = Session::instance().core()) core->start();
  return CUPTI_SUCCESS;
}

CUptiResult check_kind(CUpti_ActivityKind kind) {
  constexpr int kCountOf13_3 = 60, k13_3 = 130300;
  const int count = cupti_version() >= k13_3 ? kCountOf13_3 : CUPTI_ACTIVITY_KIND_COUNT;
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= count) {
    return CUPTI_ERROR_INVALID_KIND;
  }
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR:
    case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS:
    case CUPTI_ACTIVITY_KIND_BRANCH:
    case CUPTI_ACTIVITY_KIND_PC_SAMPLING:
    case CUPTI_ACTIVITY_KIND_EVENT:
    case CUPTI_ACTIVITY_KIND_METRIC: return CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED;
    default: return CUPTI_SUCCESS;
  }
}

CUptiResult next_record(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record,
                        const SelectedFields* fields) {
  if (record == nullptr || buffer == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* next = buffer;
  if (*record != nullptr) {
    const CUpti_ActivityKind kind = (*record)->kind;
    const size_t selected = fields == nullptr ? 0 : fields->record_size(kind);
    next = reinterpret_cast<uint8_t*>(*record) +
           (selected != 0 ? selected : Recorder::record_size(kind));
  }
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (const uint64_t us = switches().next_record_us) sleep_until_ns(now_ns() + us * 1000);
  auto* found = reinterpret_cast<CUpti_Activity*>(next);
  if (Recorder::record_size(found->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

bool valid_external(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

namespace {

// start(), for a function without a subscriber.
CUptiResult start_global() {
  const CUptiResult r = start();
  return r != CUPTI_SUCCESS ? r : Session::instance().use(Scope::global);
}

CUptiResult set_kind(CUpti_ActivityKind kind, bool on) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  if (const CUptiResult r = check_kind(kind); r != CUPTI_SUCCESS) return r;
  if (on && (is_refused("cuptiActivityEnable") || kind == switches().refused_kind)) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  Session::instance().enable(Session::instance().process(), kind, on);
  return CUPTI_SUCCESS;
}

CUptiResult set_api(bool driver, CUpti_CallbackId cbid, uint8_t on) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  if (cbid == 0 || cbid >= (driver ? kDriverCallbacks : kRuntimeCallbacks)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  Session::enable_api(Session::instance().process(), driver, cbid, on != 0);
  return CUPTI_SUCCESS;
}

// Values are kept for those who read them back; the simulator has no device buffers to size.
struct Attributes {
  std::mutex mutex;
  size_t values[16] = {3'200'000, 3'200'000, 250, 0, 0, 0, 3, 0, 0, 1, 0};
};

Attributes& attributes() {
  static Attributes& instance = *new Attributes();
  return instance;
}

CUptiResult attribute(CUpti_ActivityAttribute which, size_t* size, void* value, bool set) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  const auto index = static_cast<size_t>(which);
  if (size == nullptr || value == nullptr || index > 10) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size > sizeof(size_t)) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  Attributes& all = attributes();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (set) {
    all.values[index] = 0;
    std::memcpy(&all.values[index], value, *size);
  } else {
    std::memcpy(value, &all.values[index], *size);
  }
  return CUPTI_SUCCESS;
}

CUptiResult set_callback(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                         CUpti_CallbackId cbid) {
  if (handle == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (const CUptiResult r = start(); r != CUPTI_SUCCESS) return r;
  if (is_refused("cuptiEnableCallback")) return CUPTI_ERROR_NOT_COMPATIBLE;
  Subscriber* subscriber = Session::instance().subscriber(handle);
  if (subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::atomic<bool>* slot = subscriber->slot(domain, cbid);
  if (slot != nullptr) slot->store(on != 0);
  const bool other_domain = domain > CUPTI_CB_DOMAIN_INVALID && domain < CUPTI_CB_DOMAIN_SIZE;
  return slot != nullptr || other_domain ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult set_domain(uint32_t on, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain) {
  const size_t count = domain == CUPTI_CB_DOMAIN_RUNTIME_API  ? kRuntimeCallbacks
                       : domain == CUPTI_CB_DOMAIN_DRIVER_API ? kDriverCallbacks
                       : domain == CUPTI_CB_DOMAIN_RESOURCE   ? kResourceCallbacks
                                                              : 0;
  for (size_t i = 1; i < count; ++i) {
    const CUptiResult r = set_callback(on, handle, domain, static_cast<CUpti_CallbackId>(i));
    if (r != CUPTI_SUCCESS) return r;
  }
  return count != 0 ? CUPTI_SUCCESS : set_callback(on, handle, domain, 0);
}

// Its part since 13.2, where the client and the library have it.
bool wants_several(const CUpti_SubscriberParams* params) {
  constexpr uint32_t kKnown = 130200;
  if (params == nullptr || cupti_version() < kKnown) return false;
  CuptiV2SubscriberParams all{};
  if (params->structSize < sizeof all) return false;
  std::memcpy(&all, params, sizeof all);
  return all.allowMultipleSubscribers == 1;
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback,
                           void* userdata) {
  const CUptiResult r = start();
  return r != CUPTI_SUCCESS ? r : Session::instance().subscribe(out, {callback, userdata});
}
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback,
                              void* userdata, CUpti_SubscriberParams* params) {
  if (const CUptiResult r = start(); r != CUPTI_SUCCESS) return r;
  Session::Wish wish{callback, userdata};
  if (params != nullptr) {
    wish.name = params->subscriberName;
    wish.several = wants_several(params);
    wish.first_name = params->oldSubscriberName;
    wish.first_name_size = params->oldSubscriberSize;
  }
  return Session::instance().subscribe(out, wish);
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  return Session::instance().unsubscribe(handle);
}
CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return set_callback(on, handle, domain, cbid);
}
CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle handle,
                              CUpti_CallbackDomain domain) {
  return set_domain(on, handle, domain);
}
CUptiResult cuptiEnableAllDomains(uint32_t on, CUpti_SubscriberHandle handle) {
  const CUptiResult r = set_domain(on, handle, CUPTI_CB_DOMAIN_RUNTIME_API);
  return r != CUPTI_SUCCESS ? r : set_domain(on, handle, CUPTI_CB_DOMAIN_DRIVER_API);
}
CUptiResult cuptiGetCallbackState(uint32_t* on, CUpti_SubscriberHandle handle,
                                  CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  Subscriber* subscriber = Session::instance().subscriber(handle);
  if (on == nullptr || handle == nullptr || subscriber == nullptr) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  const std::atomic<bool>* slot = subscriber->slot(domain, cbid);
  if (slot == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *on = slot->load() ? 1 : 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (is_refused("cuptiActivityRegisterCallbacks")) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (const CUptiResult r = Session::instance().use(Scope::global); r != CUPTI_SUCCESS) return r;
  Session::instance().recorder().set_callbacks(request, complete);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return set_kind(kind, true); }
CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  Client& process = Session::instance().process();
  const bool was_on = process.wants(kind);
  const CUptiResult r = set_kind(kind, true);
  if (r == CUPTI_SUCCESS && was_on) Session::instance().dump_existing(process, kind);
  return r;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return set_kind(kind, false); }
// "When multiple subscribers are allowed, the buffers of all subscribers are flushed with the same
// flag." (cupti_activity.h)
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (const CUptiResult r = start(); r != CUPTI_SUCCESS) return r;
  const bool forced = (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  if (forced) {
    std::this_thread::sleep_for(std::chrono::milliseconds(switches().forced_flush_ms));
  }
  return Session::instance().flush(forced);
}
// Full buffers are delivered at once anyhow, whatever the period.
CUptiResult cuptiActivityFlushPeriod(uint32_t) { return start(); }
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (const CUptiResult r = Session::instance().use(Scope::global); r != CUPTI_SUCCESS) return r;
  *dropped = Session::instance().recorder().take_dropped();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes,
                                       CUpti_Activity** record) {
  const CUptiResult r = Session::instance().use(Scope::global);
  return r != CUPTI_SUCCESS ? r : next_record(buffer, valid_bytes, record);
}
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute which, size_t* size, void* value) {
  return attribute(which, size, value, false);
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute which, size_t* size, void* value) {
  return attribute(which, size, value, true);
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc source) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  if (is_refused("cuptiActivityRegisterTimestampCallback")) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (source == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Session::instance().set_clock(source);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t* out) {
  if (out == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  // Beside a subscriber of V2: https://github.com/openxla/xla/pull/44322
  if (const CUptiResult r = Session::instance().use(Scope::global); r != CUPTI_SUCCESS) return r;
  *out = Session::instance().recorder().clock().client_now();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  if (!valid_external(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  push_external_id(Session::instance().process(), kind, id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* last) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  if (!valid_external(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  return pop_external_id(Session::instance().process(), kind, last) ? CUPTI_SUCCESS
                                                                    : CUPTI_ERROR_QUEUE_EMPTY;
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t on) {
  return set_api(false, cbid, on);
}
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t on) {
  return set_api(true, cbid, on);
}
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t on) {
  if (const CUptiResult r = start_global(); r != CUPTI_SUCCESS) return r;
  Session::instance().process().event_times = on != 0;
  return CUPTI_SUCCESS;
}
// Of Blackwell GPUs.
CUptiResult cuptiActivityEnableHWTrace(uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  if (const CUptiResult r = start(); r != CUPTI_SUCCESS) return r;
  if (type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
  set_thread_id_type(type);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  if (type == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *type = get_thread_id_type();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiFinalize(void) {
  Session::instance().reset();
  return CUPTI_SUCCESS;
}

}  // extern "C"
