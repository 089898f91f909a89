// SPDX-License-Identifier: Apache-2.0
// The callback API, and what is derived from API calls: RUNTIME, DRIVER and correlation records.
#include "tests/simcuda/cupti/callbacks.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/simcuda/cupti/records.h"
#include "tests/simcuda/cupti/session.h"

namespace gpuprof::simcuda {
namespace {

constexpr size_t kExternalKinds = CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;

// Never freed: calls arrive while threads are being torn down.
struct ThreadRecords {
  int depth = 0;  // API calls entered and not left: a driver call inside a runtime call is nested
  std::vector<uint64_t> external[kExternalKinds];
};

ThreadRecords& thread_records() {
  static thread_local ThreadRecords* mine = nullptr;
  if (mine == nullptr) {
    static std::mutex& mutex = *new std::mutex();
    static std::vector<ThreadRecords*>& all = *new std::vector<ThreadRecords*>();
    mine = new ThreadRecords();
    const std::lock_guard<std::mutex> lock(mutex);
    all.push_back(mine);
  }
  return *mine;
}

std::atomic<CUpti_ActivityThreadIdType> thread_id_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};

uint32_t thread_id() {
  if (thread_id_type.load(std::memory_order_relaxed) == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    return static_cast<uint32_t>(::gettid());
  }
  return static_cast<uint32_t>(::pthread_self());
}

}  // namespace

void set_thread_id_type(CUpti_ActivityThreadIdType type) { thread_id_type.store(type); }
CUpti_ActivityThreadIdType get_thread_id_type() { return thread_id_type.load(); }

void push_external_id(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  thread_records().external[kind].push_back(id);
}

bool pop_external_id(CUpti_ExternalCorrelationKind kind, uint64_t* last) {
  std::vector<uint64_t>& ids = thread_records().external[kind];
  if (ids.empty()) return false;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return true;
}

std::atomic<bool>* Subscriber::slot(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid < kRuntimeCallbacks) return &runtime[cbid];
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < kDriverCallbacks) return &driver[cbid];
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid < kResourceCallbacks) return &resource[cbid];
  return nullptr;
}

void Session::graph_changed(const GraphEvent& event) {
  Subscriber* const subscriber = subscriber_.load(std::memory_order_acquire);
  if (subscriber == nullptr) return;
  constexpr CUpti_CallbackIdResource kIds[] = {
      CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
      CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING};
  const CUpti_CallbackIdResource id = kIds[static_cast<size_t>(event.change)];
  if (!subscriber->resource[id].load(std::memory_order_relaxed)) return;
  CUpti_GraphData graph{};
  graph.graph = graph.originalGraph = event.graph;
  graph.node = reinterpret_cast<CUgraphNode>(event.node);
  graph.originalNode = reinterpret_cast<CUgraphNode>(event.original_node);
  graph.nodeType = static_cast<CUgraphNodeType>(event.node_type);
  graph.graphExec = event.exec;
  CUpti_ResourceData data{};
  data.resourceDescriptor = &graph;
  subscriber->callback(subscriber->userdata, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

CUptiResult Session::subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback,
                               void* userdata, CUpti_SubscriberParams* params) {
  if (out == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::this_thread::sleep_for(std::chrono::milliseconds(switches().subscribe_ms));
  const std::lock_guard<std::mutex> lock(mutex_);
  const Subscriber* other = subscriber_.load();
  if (switches().subscriber_taken || other != nullptr) {
    if (params != nullptr && params->oldSubscriberName != nullptr) {
      std::snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s",
                    other != nullptr ? other->name.c_str() : "another tool");
    }
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  // Kept reachable after it unsubscribes, for a callback that is still running.
  static std::vector<Subscriber*>& all = *new std::vector<Subscriber*>();
  auto* subscriber = new Subscriber();
  all.push_back(subscriber);
  subscriber->callback = callback;
  subscriber->userdata = userdata;
  if (params != nullptr && params->subscriberName != nullptr) {
    subscriber->name = params->subscriberName;
  }
  subscriber_.store(subscriber);
  *out = reinterpret_cast<CUpti_SubscriberHandle>(subscriber);
  return CUPTI_SUCCESS;
}

CUptiResult Session::unsubscribe(CUpti_SubscriberHandle handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (handle == nullptr || subscriber(handle) == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  subscriber_.store(nullptr);
  return CUPTI_SUCCESS;
}

Subscriber* Session::subscriber(CUpti_SubscriberHandle handle) {
  Subscriber* current = subscriber_.load();
  return reinterpret_cast<Subscriber*>(handle) == current ? current : nullptr;
}

void Session::enable_api(bool driver, CUpti_CallbackId cbid, bool on) {
  const ApiFilter filter = on ? ApiFilter::kOn : ApiFilter::kOff;
  if (driver) {
    driver_filter_[cbid].store(filter);
  } else {
    runtime_filter_[cbid].store(filter);
  }
}

bool Session::wants_api(const ApiEvent& event) const {
  const auto& filter = event.driver ? driver_filter_[event.cbid] : runtime_filter_[event.cbid];
  const ApiFilter value = filter.load(std::memory_order_relaxed);
  if (value != ApiFilter::kByKind) return value == ApiFilter::kOn;
  return wants(event.driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME);
}

void Session::call_back(ApiEvent& event, CUpti_ApiCallbackSite site) {
  Subscriber* subscriber = subscriber_.load(std::memory_order_acquire);
  if (subscriber == nullptr) return;
  const CUpti_CallbackDomain domain =
      event.driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  const std::atomic<bool>* enabled = subscriber->slot(domain, event.cbid);
  if (enabled == nullptr || !enabled->load(std::memory_order_relaxed)) return;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = event.name;
  data.functionParams = event.params;
  data.functionReturnValue = event.return_value;
  data.symbolName = event.symbol;
  data.context = context_handle(event.device);
  data.contextUid = static_cast<uint32_t>(event.device) + 1;
  data.correlationData = &event.correlation_data;
  data.correlationId = gives_ids() ? event.correlation : 0;
  subscriber->callback(subscriber->userdata, domain, event.cbid, &data);
}

void Session::api_enter(ApiEvent& event) {
  ThreadRecords& thread = thread_records();
  if (thread.depth++ == 0 && wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
    for (size_t kind = 0; kind < kExternalKinds; ++kind) {
      if (thread.external[kind].empty()) continue;
      recorder_.add(make_external_record(static_cast<CUpti_ExternalCorrelationKind>(kind),
                                         thread.external[kind].back(), event.correlation));
    }
  }
  call_back(event, CUPTI_API_ENTER);
}

void Session::api_exit(ApiEvent& event) {
  // What the runtime calls of the driver has callbacks and no record. PyTorch's profiler relies on
  // that: it takes a second call of the same correlation id for an error.
  const bool inside = event.enter_seen && --thread_records().depth > 0 && event.driver;
  if (wants_api(event) && !inside) recorder_.add(make_api_record(event, thread_id()));
  call_back(event, CUPTI_API_EXIT);
}

}  // namespace gpuprof::simcuda
