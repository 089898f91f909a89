// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/cupti/session.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cupti/records.h"

namespace gpuprof::simcuda {
namespace {

struct CountSwitch {
  std::string_view name;
  uint64_t CuptiSwitches::*value;
};
constexpr CountSwitch kCountSwitches[] = {
    {"drop=", &CuptiSwitches::drop_every},
    {"zero_ts=", &CuptiSwitches::zero_timestamps_every},
    {"reversed_ts=", &CuptiSwitches::reversed_timestamps_every},
    {"duplicate_ts=", &CuptiSwitches::duplicate_timestamps_every},
    {"unknown_kind=", &CuptiSwitches::unknown_kind_every},
    {"incomplete=", &CuptiSwitches::incomplete_every},
    {"hold_buffers=", &CuptiSwitches::hold_buffers},
    {"refuse_kind=", &CuptiSwitches::refused_kind},
    {"subscribe_ms=", &CuptiSwitches::subscribe_ms},
};

bool read_count(std::string_view item, CuptiSwitches& out) {
  for (const CountSwitch& row : kCountSwitches) {
    if (item.substr(0, row.name.size()) != row.name) continue;
    out.*row.value = std::strtoull(std::string(item.substr(row.name.size())).c_str(), nullptr, 10);
    return out.*row.value != 0;
  }
  return false;
}

CuptiSwitches read_switches() {
  CuptiSwitches s;
  const char* text = std::getenv("SIMCUDA_CUPTI");
  std::string_view rest(text == nullptr ? "" : text);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item == "nodriver") {
      s.no_driver = true;
    } else if (item == "subscriber_taken") {
      s.subscriber_taken = true;
    } else if (item == "reversed_order") {
      s.reversed_order = true;
    } else if (item.substr(0, 7) == "refuse=") {
      s.refused = item.substr(7);
    } else if (item == "no_body_records") {
      s.no_body_records = true;
    } else if (item == "late_nodes") {
      s.late_nodes = true;
    } else if (!read_count(item, s)) {
      fmt::print(stderr, "simcuda: SIMCUDA_CUPTI={} is no switch; README.md lists them\n", item);
    }
  }
  return s;
}

void progress_core() {
  if (SimCore* core = Session::instance().core()) core->progress();
}

}  // namespace

const CuptiSwitches& switches() {
  static const CuptiSwitches& instance = *new CuptiSwitches(read_switches());
  return instance;
}

bool is_refused(std::string_view function) { return switches().refused == function; }

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

void Session::gpu_op(const GpuOpInfo& op) {
  if (op.graph_id != 0) graphs_seen_.store(true, std::memory_order_relaxed);
  const uint64_t every = switches().drop_every;
  static std::atomic<uint64_t> seen{0};
  if (every != 0 && (seen.fetch_add(1) + 1) % every == 0) {
    recorder_.count_dropped();
  } else {
    recorder_.add(make_record(op));
    add_bad_records(op);
  }
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

void Session::sync(const SyncInfo& info) { recorder_.add(make_record(info)); }
void Session::event_record(const EventRecordInfo& info) { recorder_.add(make_record(info)); }
void Session::memory(const MemoryInfo& info) { recorder_.add(make_record(info)); }

void Session::stream_created(const StreamInfo& info) {
  if (wants(CUPTI_ACTIVITY_KIND_STREAM)) recorder_.add(make_record(info));
}

void Session::context_created(int device, uint32_t context_id) {
  if (!wants(CUPTI_ACTIVITY_KIND_CONTEXT)) return;
  recorder_.add(make_context_record(device, context_id, 132));
}

CUcontext context_handle(int device) {
  static char contexts[1024];
  return reinterpret_cast<CUcontext>(&contexts[device % 1024]);
}

bool device_of_context(CUcontext context, int* device) {
  const auto distance =
      reinterpret_cast<char*>(context) - reinterpret_cast<char*>(context_handle(0));
  if (context == nullptr || distance < 0 || distance >= 1024) return false;
  *device = static_cast<int>(distance);
  return true;
}

}  // namespace gpuprof::simcuda

extern "C" void simcuda_cupti_attach_to(gpuprof::simcuda::SimCore* core) {
  gpuprof::simcuda::Session::instance().attach_to(core);
}
