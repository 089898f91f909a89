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
#include "tests/simcuda/cupti/faults.h"
#include "tests/simcuda/cupti/recorder.h"
#include "tests/simcuda/cupti/switches.h"

namespace gpuprof::simcuda {

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
  void enable_event_times(bool on) { event_times_.store(on); }
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

 private:
  enum class ApiFilter : uint8_t { kByKind, kOn, kOff };

  bool wants(CUpti_ActivityKind kind) const { return (wanted() >> kind & 1) != 0; }
  bool wants_api(const ApiEvent& event) const;
  bool gives_ids() const;
  void call_back(ApiEvent& event, CUpti_ApiCallbackSite site);
  void add_bad_records(const GpuOpInfo& op);

  std::atomic<SimCore*> core_{nullptr};
  std::atomic<uint64_t> wanted_{0};
  std::atomic<Subscriber*> subscriber_{nullptr};
  std::mutex mutex_;
  std::atomic<bool> graphs_seen_{false};
  std::array<std::atomic<ApiFilter>, kRuntimeCallbacks> runtime_filter_{};
  std::array<std::atomic<ApiFilter>, kDriverCallbacks> driver_filter_{};
  std::atomic<bool> event_times_{false};
  std::atomic<uint64_t> begun_ns_{0};  // of the session, when it began
  Faults faults_;
  Recorder recorder_;
};

// The stack of client ids of one thread, per kind.
void push_external_id(CUpti_ExternalCorrelationKind kind, uint64_t id);
bool pop_external_id(CUpti_ExternalCorrelationKind kind, uint64_t* last);

// Fake but stable handles of the devices' contexts.
CUcontext context_handle(int device);
bool device_of_context(CUcontext context, int* device);

}  // namespace gpuprof::simcuda
