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
  process_.recorder.set_progress(&progress_core);
  core->attach_cupti(this);
}

void Session::enable(Client& client, CUpti_ActivityKind kind, bool on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t bits = client.wanted.load();
  const uint64_t bit = uint64_t{1} << kind;
  const bool was_on = (bits & bit) != 0;
  if (on && bits == 0) client.begun_ns = now_ns();
  bits = on ? bits | bit : bits & ~bit;
  client.wanted.store(bits);
  client.recorder.set_progress(&progress_core);
  client.recorder.set_wants_overhead((bits >> CUPTI_ACTIVITY_KIND_OVERHEAD & 1) != 0);
  client.recorder.set_active(bits != 0);
  update_wanted();
  if (on && !was_on) dump_existing(client, kind);
}

// A session of the faults lasts while anybody has a kind enabled.
void Session::update_wanted() {
  const uint64_t before = wanted_.load();
  uint64_t all = wanted_by_all();
  if (before == 0 && all != 0) faults_.session_begins();
  if (before != 0 && all == 0) faults_.session_ends();
  // With several subscribers an attribute decides between graphs and their nodes.
  constexpr uint64_t kWhole = uint64_t{1} << CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  if (several_state() == 1) all = whole_graphs_.load() && all ? all | kWhole : all & ~kWhole;
  if ((all & kWhole) != 0) graph_trace_seen_ = true;
  wanted_.store(all);
}

uint64_t Session::wanted_by_all() {
  uint64_t all = 0;
  for_each_client([&](const Client& client) { all |= client.wanted.load(); });
  return all;
}

bool Session::time_whole_graphs(bool on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (wanted_by_all() != 0) return whole_graphs_.load() == on;
  whole_graphs_ = on;
  return true;
}

CUptiResult Session::flush(bool everything) {
  CUptiResult result = CUPTI_SUCCESS;
  for_each_client([&](Client& client) {
    if (const CUptiResult r = client.recorder.flush(everything); r != CUPTI_SUCCESS) result = r;
  });
  return result;
}

void Session::add(const PendingRecord& record) {
  const CUpti_ActivityKind kind = record.kind();
  for_each_client([&](Client& client) {
    if (client.wants(kind)) client.recorder.add(record);
  });
}

// Devices, contexts and streams that were there before their records were asked for.
void Session::dump_existing(Client& client, CUpti_ActivityKind kind) {
  SimCore* sim = core();
  if (sim == nullptr) return;
  if (kind == CUPTI_ACTIVITY_KIND_DEVICE) {
    for (int i = 0; i < sim->device_count(); ++i) {
      client.recorder.add(make_device_record(i, sim->device_model(i)));
    }
    return;
  }
  if (kind != CUPTI_ACTIVITY_KIND_CONTEXT && kind != CUPTI_ACTIVITY_KIND_STREAM) return;
  for (const StreamInfo& stream : sim->live_streams()) {
    if (kind == CUPTI_ACTIVITY_KIND_STREAM) {
      client.recorder.add(make_record(stream));
    } else if (stream.null_stream) {
      client.recorder.add(make_context_record(stream.device, stream.context_id,
                                              sim->device_model(stream.device).multiprocessors));
    }
  }
}

// "cuptiFinalize will return early without performing a tear-down if more than one subscriber is
// active." (CUPTI guide, 2.4.7)
void Session::reset() {
  if (any_subscriber().second > 1) return;
  if (graphs_seen_.load() && cupti_version() < 24) {
    fmt::print(stderr, "simcuda: cuptiFinalize with CUDA graphs crashes before CUDA 12.6\n");
    std::abort();
  }
  if (switches().finalize_graph_crash && now_ns() < graphs_end_ns_.load()) {
    fmt::print(stderr, "simcuda: cuptiFinalize while a CUDA graph runs ends the program\n");
    std::abort();
  }
  for_each_client([&](Client& client) {
    for (unsigned kind = 0; kind < 64; ++kind) {
      const auto each = static_cast<CUpti_ActivityKind>(kind);
      if (client.wants(each)) enable(client, each, false);
    }
  });
  for (auto& each : subscribers_) each.store(nullptr);
  graph_trace_seen_ = false;
}

GraphRules Session::graph_rules() const {
  const CuptiSwitches& s = switches();
  return {s.late_nodes != 0,
          s.late_graph_times != 0,
          s.late_graph_crash != 0 && s.late_graph_times == 0,
          s.late_transfers_as_kernels != 0,
          s.sticky_graph_trace == 0 || !graph_trace_seen_.load(),
          s.no_body_records == 0,
          s.first_iteration_only != 0};
}

void Session::set_clock(CUpti_TimestampCallbackFunc source) {
  faults_.clock_registered();
  process_.recorder.clock().set_source(source);
}

bool Session::gives_ids() const {
  return !switches().ids_need_api_kinds || wants(CUPTI_ACTIVITY_KIND_RUNTIME) ||
         wants(CUPTI_ACTIVITY_KIND_DRIVER);
}

void Session::gpu_op(const GpuOpInfo& op) {
  if (op.graph_id != 0) {
    graphs_seen_.store(true, std::memory_order_relaxed);
    if (op.end > graphs_end_ns_.load()) graphs_end_ns_.store(op.end);  // under the core's lock
  }
  // It is told when somebody looks at the GPU.
  const auto is_new_to = [&op](const Client& client) { return op.end >= client.begun_ns; };
  bool is_new = false;
  for_each_client([&](const Client& client) { is_new |= client.wanted && is_new_to(client); });
  if (!is_new) return;
  Faults::Told told{};
  if (!faults_.tell(op, told)) return;
  const uint64_t every = switches().drop_every;
  static std::atomic<uint64_t> seen{0};
  if (every != 0 && (seen.fetch_add(1) + 1) % every == 0) {
    for_each_client([](Client& client) { client.recorder.count_dropped(); });
    return;
  }
  GpuOpInfo said = op;
  said.correlation = gives_ids() ? told.correlation : 0;
  if (told.reversed_times) std::swap(said.begin, said.end);
  PendingRecord record = make_record(said);
  if (told.no_times) record.forget_times();
  record.default_clock = told.default_clock;
  record.ready = op.end;
  record.context_id = op.context_id;
  for_each_client([&](Client& client) {
    if (client.wants(record.kind()) && is_new_to(client)) client.recorder.add(record);
  });
  add_bad_records(op);
}

// What a newer or a broken CUPTI may deliver between good records.
void Session::add_bad_records(const GpuOpInfo& op) {
  static std::atomic<uint64_t> seen{0};
  const uint64_t number = seen.fetch_add(1) + 1;
  const auto due = [number](uint64_t every) { return every != 0 && number % every == 0; };
  const auto add_to_all = [&](CUpti_ActivityKind kind) {
    for_each_client([&](Client& client) {
      if (client.wanted) client.recorder.add(make_bad_record(kind, op.end));
    });
  };
  if (due(switches().unknown_kind_every)) add_to_all(kUnknownKind);
  if (due(switches().incomplete_every)) add_to_all(CUPTI_ACTIVITY_KIND_INVALID);
}

void Session::sync(const SyncInfo& info) {
  if (switches().no_device_sync_records && info.kind == SyncKind::kContext) return;
  add(make_record(info));
}

// Since 13.0 the device's time is only there where it was asked for.
void Session::event_record(const EventRecordInfo& info) {
  constexpr uint32_t kOnRequest = 130000;
  for_each_client([&](Client& client) {
    EventRecordInfo said = info;
    if (cupti_version() >= kOnRequest && !client.event_times.load()) said.time = 0;
    PendingRecord record = make_record(said);
    record.ready = info.time;
    if (said.time == 0) record.time_count = 0;
    if (client.wants(record.kind())) client.recorder.add(record);
  });
}

void Session::memory(const MemoryInfo& info) { add(make_record(info)); }
void Session::stream_created(const StreamInfo& info) { add(make_record(info)); }
void Session::context_created(int device, uint32_t context_id) {
  add(make_context_record(device, context_id, 132));
}

// NVIDIA's sample cupti_trace_injection flushes at the entry of cudaDeviceReset.
void Session::context_reset(uint32_t context_id) {
  if (!switches().reset_loses_records) return;
  for_each_client([&](Client& client) { client.recorder.forget_context(context_id); });
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
