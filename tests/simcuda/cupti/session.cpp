// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/session.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cupti/records.h"

namespace gpuprof::simcuda {
namespace {

void progress_core() {
  if (SimCore* core = Session::instance().core()) core->progress();
}

}  // namespace

Session& Session::instance() {
  static Session& session = *new Session();
  return session;
}

void Session::attach() {
  if (core() != nullptr) return;
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  void* entry = ::dlsym(driver, "simcuda_core");
  if (entry != nullptr) attach_to(reinterpret_cast<SimCore* (*)()>(entry)());
}

void Session::attach_to(SimCore* core) {
  if (switches().no_driver) return;
  SimCore* none = nullptr;
  if (!core_.compare_exchange_strong(none, core)) return;
  recorder_.set_progress(&progress_core);
  core->attach_cupti(this);
}

void Session::enable(CUpti_ActivityKind kind, bool on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t bits = wanted_.load();
  const uint64_t bit = uint64_t{1} << kind;
  const bool was_on = (bits & bit) != 0;
  if (on && bits == 0) {
    begun_ns_ = now_ns();
    faults_.session_begins();
  }
  if (!on && bits == bit) faults_.session_ends();
  bits = on ? bits | bit : bits & ~bit;
  wanted_.store(bits);
  recorder_.set_wants_overhead((bits >> CUPTI_ACTIVITY_KIND_OVERHEAD & 1) != 0);
  recorder_.set_active(bits != 0);
  if (on && !was_on) dump_existing(kind);
}

// Devices, contexts and streams that were there before their records were asked for.
void Session::dump_existing(CUpti_ActivityKind kind) {
  SimCore* sim = core();
  if (sim == nullptr) return;
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
    for (int i = 0; i < sim->device_count(); ++i) {
      recorder_.add(make_device_record(i, sim->device_model(i)));
    }
    return;
  }
  if (kind != CUPTI_ACTIVITY_KIND_CONTEXT && kind != CUPTI_ACTIVITY_KIND_STREAM) return;
  for (const StreamInfo& stream : sim->live_streams()) {
    if (kind == CUPTI_ACTIVITY_KIND_STREAM) {
      recorder_.add(make_record(stream));
    } else if (stream.null_stream) {
      recorder_.add(make_context_record(stream.device, stream.context_id,
                                        sim->device_model(stream.device).multiprocessors));
    }
  }
}

void Session::reset() {
  if (graphs_seen_.load() && cupti_version() < 24) {
    fmt::print(stderr, "simcuda: cuptiFinalize with CUDA graphs crashes before CUDA 12.6\n");
    std::abort();
  }
  for (unsigned kind = 0; kind < 64; ++kind) {
    if ((wanted() >> kind & 1) != 0) enable(static_cast<CUpti_ActivityKind>(kind), false);
  }
  subscriber_.store(nullptr);
}

GraphRules Session::graph_rules() const {
  const CuptiSwitches& s = switches();
  return {s.late_nodes != 0, s.late_graph_times != 0, s.late_transfers_as_kernels != 0,
          s.no_body_records == 0, s.first_iteration_only != 0};
}

void Session::set_clock(CUpti_TimestampCallbackFunc source) {
  faults_.clock_registered();
  recorder_.clock().set_source(source);
}

bool Session::gives_ids() const {
  return !switches().ids_need_api_kinds || wants(CUPTI_ACTIVITY_KIND_RUNTIME) ||
         wants(CUPTI_ACTIVITY_KIND_DRIVER);
}

void Session::gpu_op(const GpuOpInfo& op) {
  if (op.graph_id != 0) graphs_seen_.store(true, std::memory_order_relaxed);
  if (op.end < begun_ns_) return;  // it is told when somebody looks at the GPU
  Faults::Told told{};
  if (!faults_.tell(op, told)) return;
  const uint64_t every = switches().drop_every;
  static std::atomic<uint64_t> seen{0};
  if (every != 0 && (seen.fetch_add(1) + 1) % every == 0) {
    recorder_.count_dropped();
    return;
  }
  GpuOpInfo said = op;
  said.correlation = gives_ids() ? told.correlation : 0;
  if (told.reversed_times) std::swap(said.begin, said.end);
  PendingRecord record = make_record(said);
  if (told.no_times) record.forget_times();
  record.default_clock = told.default_clock;
  record.ready = op.end;
  recorder_.add(record);
  add_bad_records(op);
}

// What a newer or a broken CUPTI may deliver between good records.
void Session::add_bad_records(const GpuOpInfo& op) {
  static std::atomic<uint64_t> seen{0};
  const uint64_t number = seen.fetch_add(1) + 1;
  const auto due = [number](uint64_t every) { return every != 0 && number % every == 0; };
  if (due(switches().unknown_kind_every)) recorder_.add(make_bad_record(kUnknownKind, op.end));
  if (due(switches().incomplete_every)) {
    recorder_.add(make_bad_record(CUPTI_ACTIVITY_KIND_INVALID, op.end));
  }
}

void Session::sync(const SyncInfo& info) {
  if (switches().no_device_sync_records && info.kind == SyncKind::kContext) return;
  recorder_.add(make_record(info));
}

// Since 13.0 the device's time is only there where it was asked for.
void Session::event_record(const EventRecordInfo& info) {
  constexpr uint32_t kOnRequest = 130000;
  EventRecordInfo said = info;
  if (cupti_version() >= kOnRequest && !event_times_.load()) said.time = 0;
  PendingRecord record = make_record(said);
  record.ready = info.time;
  if (said.time == 0) record.time_count = 0;
  recorder_.add(record);
}

void Session::memory(const MemoryInfo& info) { recorder_.add(make_record(info)); }

void Session::stream_created(const StreamInfo& info) {
  if (wants(CUPTI_ACTIVITY_KIND_STREAM)) recorder_.add(make_record(info));
}

void Session::context_created(int device, uint32_t context_id) {
  if (!wants(CUPTI_ACTIVITY_KIND_CONTEXT)) return;
  recorder_.add(make_context_record(device, context_id, 132));
}

CUcontext context_handle(int device) {
  static uint64_t contexts[1024];
  return reinterpret_cast<CUcontext>(&contexts[device % 1024]);
}

bool device_of_context(CUcontext context, int* device) {
  const auto distance =
      reinterpret_cast<uint64_t*>(context) - reinterpret_cast<uint64_t*>(context_handle(0));
  if (context == nullptr || distance < 0 || distance >= 1024) return false;
  *device = static_cast<int>(distance);
  return true;
}

}  // namespace gpuprof::simcuda

extern "C" void simcuda_cupti_attach_to(gpuprof::simcuda::SimCore* core) {
  gpuprof::simcuda::Session::instance().attach_to(core);
}
