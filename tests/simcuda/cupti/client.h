// SPDX-License-Identifier: Apache-2.0
// A user of CUPTI's activity functions, with what it has enabled and its records: the process (the
// functions without a subscriber, "V1") or one subscriber (those with one, "V2"; cupti_activity.h
// of 13.3: "for the subscriber").
#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <string>

#include "tests/simcuda/core/later_callbacks.h"
#include "tests/simcuda/cupti/recorder.h"

namespace gpuprof::simcuda {

constexpr size_t kRuntimeCallbacks = kLaterCallbackEnd;
constexpr size_t kDriverCallbacks = CUPTI_DRIVER_TRACE_CBID_SIZE;
constexpr size_t kResourceCallbacks = CUPTI_CBID_RESOURCE_SIZE;

struct Client {
  enum class ApiFilter : uint8_t { kByKind, kOn, kOff };

  Recorder recorder;
  std::atomic<uint64_t> wanted{0};  // one bit for each kind
  std::atomic<bool> event_times{false};
  std::atomic<bool> selects_fields{false};
  std::atomic<uint64_t> begun_ns{0};  // of its session, when that began
  std::array<std::atomic<ApiFilter>, kRuntimeCallbacks> runtime_filter{};
  std::array<std::atomic<ApiFilter>, kDriverCallbacks> driver_filter{};

  bool wants(CUpti_ActivityKind kind) const {
    return kind >= 0 && kind < 64 && (wanted.load(std::memory_order_relaxed) >> kind & 1) != 0;
  }
};

// One client of the callback API. Never freed where it has records of its own; else a while after
// it has unsubscribed: a callback may be running.
struct Subscriber {
  CUpti_CallbackFunc callback = nullptr;
  void* userdata = nullptr;
  std::string name;
  bool several = false;                      // it allows others beside it
  std::atomic<Client*> activities{nullptr};  // since its first V2 call
  std::array<std::atomic<bool>, kRuntimeCallbacks> runtime{};
  std::array<std::atomic<bool>, kDriverCallbacks> driver{};
  std::array<std::atomic<bool>, kResourceCallbacks> resource{};

  std::atomic<bool>* slot(CUpti_CallbackDomain domain, CUpti_CallbackId told);
};

// By launch_id: from the headers' callback id to that of this CUPTI, and back.
CUpti_CallbackId told_id(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);

}  // namespace gpuprof::simcuda
