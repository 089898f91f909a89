// SPDX-License-Identifier: Apache-2.0
// The state of the simulated CUPTI: what is enabled, who subscribed, how it was told to fail.
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "tests/simcuda/core/port.h"
#include "tests/simcuda/cupti/client.h"
#include "tests/simcuda/cupti/history_faults.h"
#include "tests/simcuda/cupti/switches.h"

namespace gpuprof::simcuda {

// Which of the two kinds of activity functions is in use: those without a subscriber (V1) or those
// with one (V2). "Cannot mix global-scope and subscriber-scope activity APIs."
enum class Scope : uint8_t { none, global, subscriber };

class Session final : public CuptiSink {
 public:
  // Never destroyed.
  static Session& instance();

  // Connects to the simulated runtime once it is in the process. Cheap when already done.
  void attach();
  void attach_to(SimCore* core);
  SimCore* core() const { return core_.load(std::memory_order_acquire); }

  Client& process() { return process_; }
  Recorder& recorder() { return process_.recorder; }

  // What a subscriber asks for; `v2`: by cuptiSubscribe_v2.
  struct Wish {
    CUpti_CallbackFunc callback = nullptr;
    void* userdata = nullptr;
    const char* name = nullptr;
    bool several = false;
    char* first_name = nullptr;  // returns that of the first subscriber
    size_t first_name_size = 0;
  };
  CUptiResult subscribe(CUpti_SubscriberHandle* out, const Wish& wish);
  CUptiResult unsubscribe(CUpti_SubscriberHandle handle);
  Subscriber* subscriber(CUpti_SubscriberHandle handle);

  // Whether functions of this scope may be called now; and that they are.
  CUptiResult use(Scope scope);
  // The subscriber's own activities; null: it is none.
  Client* activities(CUpti_SubscriberHandle handle);
  uint8_t several_state();  // CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE
  // Of all: whether graphs have one record each in place of their nodes'. False: too late.
  bool time_whole_graphs(bool on);
  bool times_whole_graphs() const { return whole_graphs_.load(); }
  uint64_t wanted_by_all();
  CUptiResult flush(bool everything);

  void enable(Client& client, CUpti_ActivityKind kind, bool on);
  void dump_existing(Client& client, CUpti_ActivityKind kind);
  static void enable_api(Client& client, bool driver, CUpti_CallbackId cbid, bool on);
  void set_clock(CUpti_TimestampCallbackFunc source);
  void reset();

  // CuptiSink
  uint64_t wanted() const override { return wanted_.load(std::memory_order_relaxed); }
  GraphRules graph_rules() const override;
  void api_enter(ApiEvent& event) override;
  void api_exit(ApiEvent& event) override;
  void gpu_op(const GpuOpInfo& op) override;
  void sync(const SyncInfo& info) override;
  void event_record(const EventRecordInfo& info) override;
  void memory(const MemoryInfo& info) override;
  void graph_changed(const GraphEvent& event) override;
  void stream_created(const StreamInfo& info) override;
  void context_created(int device, uint32_t context_id) override;
  void context_reset(uint32_t context_id) override;

 private:
  static constexpr size_t kSubscribers = 8;

  template <typename Function>
  void for_each_subscriber(Function function) {
    for (auto& each : subscribers_) {
      if (Subscriber* const subscriber = each.load(std::memory_order_acquire)) {
        function(*subscriber);
      }
    }
  }
  template <typename Function>
  void for_each_client(Function function) {
    function(process_);
    for_each_subscriber([&](Subscriber& subscriber) {
      if (Client* const client = subscriber.activities.load()) function(*client);
    });
  }
  // To all that want such records.
  void add(const PendingRecord& record);

  static bool wants_api(const Client& client, const ApiEvent& event);
  bool gives_ids() const;
  bool wants(CUpti_ActivityKind kind) const { return (wanted() >> kind & 1) != 0; }
  void call_back(ApiEvent& event, CUpti_ApiCallbackSite site);
  void add_bad_records(const GpuOpInfo& op);
  void update_wanted();
  Scope scope_now();
  std::pair<Subscriber*, size_t> any_subscriber();  // the first one, and how many there are

  std::atomic<SimCore*> core_{nullptr};
  std::atomic<uint64_t> wanted_{0};
  std::array<std::atomic<Subscriber*>, kSubscribers> subscribers_{};
  std::mutex mutex_;
  std::atomic<bool> graphs_seen_{false};
  std::atomic<uint64_t> graphs_end_ns_{0};  // of the last graph launch that is known to end
  std::atomic<bool> whole_graphs_{false};
  std::atomic<bool> graph_trace_seen_{false};  // enabled by any client so far
  Scope first_scope_ = Scope::none;
  Faults faults_;
  Client process_;
};

// The stack of client ids of one thread, per kind; `owner`: the client they are for.
void push_external_id(const Client& owner, CUpti_ExternalCorrelationKind kind, uint64_t id);
bool pop_external_id(const Client& owner, CUpti_ExternalCorrelationKind kind, uint64_t* last);

// Fake but stable handles of the devices' contexts.
CUcontext context_handle(int device);
bool device_of_context(CUcontext context, int* device);

}  // namespace gpuprof::simcuda
