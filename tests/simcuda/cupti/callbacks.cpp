// SPDX-License-Identifier: Apache-2.0
// The callback API, and what is derived from API calls: RUNTIME, DRIVER and correlation records.
#include "tests/simcuda/cupti/callbacks.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
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
  struct ExternalId {
    const Client* owner;
    uint64_t id;
  };
  std::vector<ExternalId> external[kExternalKinds];
  // The word that a call has from its entry to its exit, by the subscriber's place.
  uint64_t words[2][8] = {};
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

void push_external_id(const Client& owner, CUpti_ExternalCorrelationKind kind, uint64_t id) {
  thread_records().external[kind].push_back({&owner, id});
}

bool pop_external_id(const Client& owner, CUpti_ExternalCorrelationKind kind, uint64_t* last) {
  auto& ids = thread_records().external[kind];
  const auto newest = std::find_if(ids.rbegin(), ids.rend(),
                                   [&owner](const auto& each) { return each.owner == &owner; });
  if (newest == ids.rend()) return false;
  if (last != nullptr) *last = newest->id;
  ids.erase(std::next(newest).base());
  return true;
}

CUpti_CallbackId told_id(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  const auto later = static_cast<CUpti_CallbackId>(switches().launch_id);
  CUpti_CallbackId launch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) launch = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  return later == 0 ? cbid : cbid == launch ? later : cbid == later ? launch : cbid;
}

std::atomic<bool>* Subscriber::slot(CUpti_CallbackDomain domain, CUpti_CallbackId told) {
  const CUpti_CallbackId cbid = told_id(domain, told);
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid < kRuntimeCallbacks) return &runtime[cbid];
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid < kDriverCallbacks) return &driver[cbid];
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && cbid < kResourceCallbacks) return &resource[cbid];
  return nullptr;
}

void Session::graph_changed(const GraphEvent& event) {
  constexpr CUpti_CallbackIdResource kIds[] = {
      CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
      CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
      CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING};
  const CUpti_CallbackIdResource id = kIds[static_cast<size_t>(event.change)];
  CUpti_GraphData graph{};
  graph.graph = graph.originalGraph = event.graph;
  graph.node = reinterpret_cast<CUgraphNode>(event.node);
  graph.originalNode = reinterpret_cast<CUgraphNode>(event.original_node);
  graph.nodeType = static_cast<CUgraphNodeType>(event.node_type);
  graph.graphExec = event.exec;
  CUpti_ResourceData data{};
  data.resourceDescriptor = &graph;
  for_each_subscriber([&](const Subscriber& subscriber) {
    if (!subscriber.resource[id].load(std::memory_order_relaxed)) return;
    subscriber.callback(subscriber.userdata, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
  });
}

std::pair<Subscriber*, size_t> Session::any_subscriber() {
  std::pair<Subscriber*, size_t> found{nullptr, 0};
  for_each_subscriber([&found](Subscriber& each) {
    if (found.second++ == 0) found.first = &each;
  });
  return found;
}

uint8_t Session::several_state() {
  const Subscriber* const first = any_subscriber().first;
  return first == nullptr ? 2 : first->several;
}

// Of which kind the functions are that were called last before nothing was in use any more does not
// matter, or (v1_v2_once) it does for the life of the process: the documents do not tell.
Scope Session::scope_now() {
  if (switches().v1_v2_once) return first_scope_;
  const Subscriber* const first = any_subscriber().first;
  if (first != nullptr && (first->several || first->activities.load() != nullptr)) {
    return Scope::subscriber;
  }
  return process_.wanted.load() != 0 ? Scope::global : Scope::none;
}

CUptiResult Session::use(Scope scope) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Scope now = scope_now();
  if (now != Scope::none && now != scope) return CUPTI_ERROR_NOT_COMPATIBLE;
  first_scope_ = scope;
  return CUPTI_SUCCESS;
}

CUptiResult Session::subscribe(CUpti_SubscriberHandle* out, const Wish& wish) {
  if (out == nullptr || wish.callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  static std::atomic<bool> subscribed_before{false};
  const bool first = !subscribed_before.exchange(true);
  const uint64_t more_ms = first ? switches().first_subscribe_ms : 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(switches().subscribe_ms + more_ms));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [other, count] = any_subscriber();
  if (wish.first_name != nullptr && (other != nullptr || switches().subscriber_taken)) {
    std::snprintf(wish.first_name, wish.first_name_size, "%s",
                  other != nullptr ? other->name.c_str() : "another tool");
  }
  const bool beside = other != nullptr && other->several && wish.several && count < kSubscribers;
  const bool old = wish.several && switches().old_driver;
  const bool mixed = wish.several ? scope_now() == Scope::global
                                  : switches().v1_v2_once && first_scope_ == Scope::subscriber;
  if (switches().subscriber_taken || old || mixed || (other != nullptr && !beside)) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  if (wish.several) first_scope_ = Scope::subscriber;
  // Kept after it unsubscribes, for a callback that is still running: the newest ones.
  constexpr size_t kKept = 16;
  static std::vector<Subscriber*>& all = *new std::vector<Subscriber*>();
  auto* subscriber = new Subscriber();
  all.push_back(subscriber);
  if (all.size() > kKept) {
    if (all.front()->activities.load() == nullptr) delete all.front();
    all.erase(all.begin());
  }
  subscriber->callback = wish.callback;
  subscriber->userdata = wish.userdata;
  subscriber->several = wish.several;
  // "CUPTI adds a 10 byte prefix", "CUPTI for " (cupti_callbacks.h).
  if (wish.name != nullptr) subscriber->name = std::string("CUPTI for ") + wish.name;
  for (auto& place : subscribers_) {
    Subscriber* none = nullptr;
    if (place.compare_exchange_strong(none, subscriber)) break;
  }
  *out = reinterpret_cast<CUpti_SubscriberHandle>(subscriber);
  return CUPTI_SUCCESS;
}

// What its client was not given is lost: "Users should flush all activity buffers [...] before
// unsubscribing" (CUPTI guide, 2.4.7).
CUptiResult Session::unsubscribe(CUpti_SubscriberHandle handle) {
  Subscriber* const leaving = subscriber(handle);
  if (leaving == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Client* const client = leaving->activities.load();
  if (client != nullptr) client->recorder.stop();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (client != nullptr) client->wanted = 0;
  for (auto& place : subscribers_) {
    Subscriber* expected = leaving;
    place.compare_exchange_strong(expected, nullptr);
  }
  update_wanted();
  return CUPTI_SUCCESS;
}

Subscriber* Session::subscriber(CUpti_SubscriberHandle handle) {
  Subscriber* found = nullptr;
  for_each_subscriber([&](Subscriber& each) {
    if (reinterpret_cast<Subscriber*>(handle) == &each) found = &each;
  });
  return found;
}

Client* Session::activities(CUpti_SubscriberHandle handle) {
  Subscriber* const owner = subscriber(handle);
  if (owner == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (owner->activities.load() == nullptr) owner->activities = new Client();
  return owner->activities.load();
}

void Session::enable_api(Client& client, bool driver, CUpti_CallbackId cbid, bool on) {
  const auto filter = on ? Client::ApiFilter::kOn : Client::ApiFilter::kOff;
  if (driver) {
    client.driver_filter[cbid].store(filter);
  } else {
    client.runtime_filter[cbid].store(filter);
  }
}

bool Session::wants_api(const Client& client, const ApiEvent& event) {
  const auto& filter =
      event.driver ? client.driver_filter[event.cbid] : client.runtime_filter[event.cbid];
  const Client::ApiFilter value = filter.load(std::memory_order_relaxed);
  if (value != Client::ApiFilter::kByKind) return value == Client::ApiFilter::kOn;
  return client.wants(event.driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME);
}

void Session::call_back(ApiEvent& event, CUpti_ApiCallbackSite site) {
  const CUpti_CallbackDomain domain =
      event.driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = event.name;
  data.functionParams = event.params;
  data.functionReturnValue = event.return_value;
  data.symbolName = event.symbol;
  data.context = context_handle(event.device);
  data.contextUid = static_cast<uint32_t>(event.device) + 1;
  data.correlationId = gives_ids() ? event.correlation : 0;
  for (size_t place = 0; place < kSubscribers; ++place) {
    Subscriber* const subscriber = subscribers_[place].load(std::memory_order_acquire);
    if (subscriber == nullptr) continue;
    const CUpti_CallbackId id = told_id(domain, event.cbid);
    const std::atomic<bool>* enabled = subscriber->slot(domain, id);
    if (enabled == nullptr || !enabled->load(std::memory_order_relaxed)) continue;
    // Whether subscribers share the word from entry to exit no document tells.
    data.correlationData = switches().own_call_words ? &thread_records().words[event.driver][place]
                                                     : &event.correlation_data;
    subscriber->callback(subscriber->userdata, domain, id, &data);
  }
}

void Session::api_enter(ApiEvent& event) {
  ThreadRecords& thread = thread_records();
  if (thread.depth++ == 0 && wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) {
    for_each_client([&](Client& client) {
      if (!client.wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
      for (size_t kind = 0; kind < kExternalKinds; ++kind) {
        const auto& ids = thread.external[kind];
        const auto newest = std::find_if(ids.rbegin(), ids.rend(), [&client](const auto& each) {
          return each.owner == &client;
        });
        if (newest == ids.rend()) continue;
        client.recorder.add(make_external_record(static_cast<CUpti_ExternalCorrelationKind>(kind),
                                                 newest->id, event.correlation));
      }
    });
  }
  call_back(event, CUPTI_API_ENTER);
}

void Session::api_exit(ApiEvent& event) {
  // What the runtime calls of the driver has callbacks and no record. PyTorch's profiler relies on
  // that: it takes a second call of the same correlation id for an error.
  const bool inside = event.enter_seen && --thread_records().depth > 0 && event.driver;
  for_each_client([&](Client& client) {
    if (inside || !wants_api(client, event)) return;
    client.recorder.add(make_api_record(event, thread_id()));
  });
  call_back(event, CUPTI_API_EXIT);
  if (inside) return;
  if (switches().overhead_us != 0 && std::strcmp(event.name, "cudaDeviceSynchronize") == 0) {
    const auto kind = static_cast<CUpti_ActivityOverheadKind>(switches().overhead_kind);
    const uint64_t begin = event.end - 1000 * switches().overhead_us;
    for_each_client([&](Client& client) { client.recorder.add_overhead(kind, begin, event.end); });
  }
  for_each_client([](Client& client) {
    client.recorder.ask_in_call();
    client.recorder.deliver_in_call();
  });
}

}  // namespace gpuprof::simcuda
