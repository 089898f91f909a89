// SPDX-License-Identifier: Apache-2.0
// The state of the simulated CUPTI: what is enabled, who subscribed, how it was told to fail.
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "tests/simcuda/core/port.h"
#include "tests/simcuda/cupti/recorder.h"

namespace gpuprof::simcuda {

// SIMCUDA_CUPTI, comma separated; README.md lists them. Of counts, 0 is never.
struct CuptiSwitches {
  bool no_driver = false;
  bool subscriber_taken = false;
  bool no_body_records = false;
  bool late_nodes = false;
  bool reversed_order = false;
  std::string refused;        // a function that fails
  uint64_t refused_kind = 0;  // an activity kind that is refused
  uint64_t drop_every = 0;
  uint64_t zero_timestamps_every = 0;
  uint64_t reversed_timestamps_every = 0;
  uint64_t duplicate_timestamps_every = 0;
  uint64_t unknown_kind_every = 0;
  uint64_t incomplete_every = 0;
  uint64_t hold_buffers = 0;
  uint64_t subscribe_ms = 0;  // that subscribing takes
};

const CuptiSwitches& switches();
bool is_refused(std::string_view function);

constexpr size_t kRuntimeCallbacks = CUPTI_RUNTIME_TRACE_CBID_SIZE;
constexpr size_t kDriverCallbacks = CUPTI_DRIVER_TRACE_CBID_SIZE;
constexpr size_t kResourceCallbacks = CUPTI_CBID_RESOURCE_SIZE;

// One client of the callback API. Never freed: a callback may be running when it unsubscribes.
struct Subscriber {
  CUpti_CallbackFunc callback = nullptr;
  void* userdata = nullptr;
  std::string name;
  std::array<std::atomic<bool>, kRuntimeCallbacks> runtime{};
  std::array<std::atomic<bool>, kDriverCallbacks> driver{};
  std::array<std::atomic<bool>, kResourceCallbacks> resource{};

  std::atomic<bool>* slot(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
};

class Session final : public CuptiSink {
 public:
  // Never destroyed.
  static Session& instance();

  // Connects to the simulated runtime once it is in the process. Cheap when already done.
  void attach();
  void attach_to(SimCore* core);
  SimCore* core() const { return core_.load(std::memory_order_acquire); }

  Recorder& recorder() { return recorder_; }

  CUptiResult subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* userdata,
                        CUpti_SubscriberParams* params);
  CUptiResult unsubscribe(CUpti_SubscriberHandle handle);
  Subscriber* subscriber(CUpti_SubscriberHandle handle);

  void enable(CUpti_ActivityKind kind, bool on);
  void dump_existing(CUpti_ActivityKind kind);
  void enable_api(bool driver, CUpti_CallbackId cbid, bool on);
  void reset();

  // CuptiSink
  uint64_t wanted() const override { return wanted_.load(std::memory_order_relaxed); }
  bool hides_conditional_bodies() const override { return switches().no_body_records; }
  bool sees_late_nodes() const override { return switches().late_nodes; }
  void api_enter(ApiEvent& event) override;
  void api_exit(ApiEvent& event) override;
  void gpu_op(const GpuOpInfo& op) override;
  void sync(const SyncInfo& info) override;
  void event_record(const EventRecordInfo& info) override;
  void memory(const MemoryInfo& info) override;
  void graph_changed(const GraphEvent& event) override;
  void stream_created(const StreamInfo& info) override;
  void context_created(int device, uint32_t context_id) override;

 private:
  enum class ApiFilter : uint8_t { kByKind, kOn, kOff };

  bool wants(CUpti_ActivityKind kind) const { return (wanted() >> kind & 1) != 0; }
  bool wants_api(const ApiEvent& event) const;
  void call_back(ApiEvent& event, CUpti_ApiCallbackSite site);
  void add_bad_records(const GpuOpInfo& op);

  std::atomic<SimCore*> core_{nullptr};
  std::atomic<uint64_t> wanted_{0};
  std::atomic<Subscriber*> subscriber_{nullptr};
  std::mutex mutex_;
  std::atomic<bool> graphs_seen_{false};
  std::array<std::atomic<ApiFilter>, kRuntimeCallbacks> runtime_filter_{};
  std::array<std::atomic<ApiFilter>, kDriverCallbacks> driver_filter_{};
  Recorder recorder_;
};

// The stack of client ids of one thread, per kind.
void push_external_id(CUpti_ExternalCorrelationKind kind, uint64_t id);
bool pop_external_id(CUpti_ExternalCorrelationKind kind, uint64_t* last);

// Fake but stable handles of the devices' contexts.
CUcontext context_handle(int device);
bool device_of_context(CUcontext context, int* device);

}  // namespace gpuprof::simcuda
