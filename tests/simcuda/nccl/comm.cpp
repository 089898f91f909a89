// SPDX-License-Identifier: Apache-2.0
// Communicators: making them, splitting them, taking them down.
#include "tests/simcuda/nccl/comm.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/nccl/api_scope.h"
#include "tests/simcuda/nccl/wait.h"

namespace gpuprof::simcuda {
namespace {

constexpr char kIdPrefix[] = "simcuda_nccl_";

struct Comms {
  std::mutex mutex;
  std::set<ncclComm_t> live;
};

Comms& comms() {
  static Comms& instance = *new Comms();
  return instance;
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

ncclComm_t publish_comm(std::shared_ptr<CommState> state) {
  auto* handle = new ncclComm{std::move(state)};
  const std::lock_guard<std::mutex> lock(comms().mutex);
  comms().live.insert(handle);
  return handle;
}

void withdraw_comm(ncclComm_t handle) {
  {
    const std::lock_guard<std::mutex> lock(comms().mutex);
    comms().live.erase(handle);
  }
  delete handle;
}

bool is_blocking(const ncclConfig_t* config, const CommState* parent) {
  if (const char* const all = std::getenv("NCCL_COMM_BLOCKING")) return std::atoi(all) != 0;
  if (config == nullptr) return parent == nullptr || parent->blocking;
  return config->blocking != 0;
}

ncclResult_t ensure_ready(const CommState& comm) {
  const ncclResult_t state = comm.async_error.load();
  return state == ncclInProgress ? ncclInvalidArgument : state;
}

ncclResult_t make_comm(std::shared_ptr<CommState> state, ncclComm_t* out,
                       std::function<ncclResult_t()> now,
                       const std::shared_ptr<CommState>& parent) {
  const ncclComm_t handle = publish_comm(state);
  *out = parent == nullptr ? handle : nullptr;
  DeferredInit init;
  init.comm = parent == nullptr ? state : parent;
  init.now = std::move(now);
  init.later = [state, out, handle, parent] {
    const ncclResult_t result = wait_for_all_ranks(*state);
    state->made = result == ncclSuccess;
    if (result == ncclSuccess && parent != nullptr) __atomic_store_n(out, handle, __ATOMIC_RELEASE);
    if (result != ncclSuccess && (parent != nullptr || state->blocking)) {
      withdraw_comm(handle);
      *out = nullptr;
    }
    return result;
  };
  return defer_or_run(std::move(init));
}

std::shared_ptr<CommState> make_comm_state(int rank, int ranks, int device) {
  auto state = std::make_shared<CommState>();
  state->rank = rank;
  state->ranks = ranks;
  state->device = device;
  state->seed = sim_core()->seed();
  return state;
}

ncclResult_t enter_comm(CommState& state, const std::string& name) {
  state.rendezvous = Rendezvous::open(name, state.ranks);
  if (state.rendezvous == nullptr) return ncclSystemError;
  state.hash = hash_of(name);
  state.rendezvous->join();
  return ncclSuccess;
}

ncclResult_t wait_for_all_ranks(const CommState& state) {
  if (wait_until([&] { return state.rendezvous->complete(); })) return ncclSuccess;
  fmt::print(stderr, "simcuda: nccl: rank {} of {}: only {} ranks came within {:.0f} s\n",
             state.rank, state.ranks, state.rendezvous->joined(), timeout_seconds());
  state.rendezvous->abandon();
  return ncclSystemError;
}

namespace {

// As NCCL does (src/misc/nvmlwrap.cc), and like it goes on without.
void load_nvml() {
  static const bool loaded = [] {
    void* const nvml = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    const auto init = reinterpret_cast<int (*)()>(nvml ? ::dlsym(nvml, "nvmlInit_v2") : nullptr);
    return init && init() == 0;
  }();
  static_cast<void>(loaded);
}

ncclResult_t init_rank(ncclComm_t* out, int ranks, const ncclUniqueId& id, int rank, int device,
                       const ncclConfig_t* config = nullptr) {
  if (sim_core() == nullptr) return ncclUnhandledCudaError;
  load_nvml();
  const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  const bool known = name.compare(0, sizeof kIdPrefix - 1, kIdPrefix) == 0;
  if (out == nullptr || !known || ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) {
    return ncclInvalidArgument;
  }
  auto state = make_comm_state(rank, ranks, device);
  state->blocking = is_blocking(config);
  return make_comm(state, out, [state, name] { return enter_comm(*state, name); });
}

// On the current device, by function `name`.
ncclResult_t init_here(const char* name, ncclComm_t* comm, int ranks, const ncclUniqueId& id,
                       int rank, const ncclConfig_t* config = nullptr) {
  CommState here;
  here.rank = rank, here.ranks = ranks;
  here.device = sim_core() == nullptr ? 0 : sim_core()->current_device();
  const bool at_begin = nvtx_release() == NvtxRelease::k2_18;
  ApiScope scope(name, at_begin ? nvtx_fields(here) : NvtxFields{});
  if (sim_core() == nullptr) return scope.finish(ncclUnhandledCudaError);
  const ncclResult_t result = init_rank(comm, ranks, id, rank, here.device, config);
  // In a group NCCL does not know the hash yet.
  const auto made = result == ncclSuccess ? find_comm(*comm) : nullptr;
  if (made) here.hash = made->hash;
  if (result == ncclSuccess && !at_begin) scope.made(nvtx_fields(here));
  return scope.finish(result);
}

// Waits until all enqueued operations are resolved.
void drain(const CommState& state) {
  while (state.resolved.load() != state.enqueued.load() && !state.aborted.load()) {
    sim_core()->progress();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

ncclResult_t take_down(ncclComm_t handle, bool abort) {
  const auto state = find_comm(handle);
  if (state == nullptr) return ncclInvalidArgument;
  if (abort) state->aborted.store(true);
  while (!abort && state->async_error.load() == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  sim_core()->progress();
  drain(*state);
  withdraw_comm(handle);
  return ncclSuccess;
}

template <typename Get>
ncclResult_t get(ncclComm_t handle, int* out, Get&& value) {
  const auto state = find_comm(handle);
  if (state == nullptr || out == nullptr) return ncclInvalidArgument;
  if (const ncclResult_t busy = ensure_ready(*state)) return busy;
  *out = state->made.load() ? value(*state) : 0;
  return ncclSuccess;
}

}  // namespace

SimCore* sim_core() {
  static SimCore* const core = []() -> SimCore* {
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* entry = driver == nullptr ? nullptr : ::dlsym(driver, "simcuda_core");
    return entry == nullptr ? nullptr : reinterpret_cast<SimCore* (*)()>(entry)();
  }();
  return core;
}

std::shared_ptr<CommState> find_comm(ncclComm_t handle) {
  const std::lock_guard<std::mutex> lock(comms().mutex);
  return comms().live.count(handle) != 0 ? handle->state : nullptr;
}

}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  ApiScope scope("ncclGetUniqueId");
  if (id == nullptr) return scope.finish(ncclInvalidArgument);
  static std::atomic<uint64_t> counter{0};
  std::memset(id, 0, sizeof *id);
  const auto end = fmt::format_to_n(id->internal, sizeof id->internal - 1, "{}{}_{}_{:x}",
                                    kIdPrefix, ::getpid(), counter.fetch_add(1), now_ns());
  return scope.finish(end.size < sizeof id->internal ? ncclSuccess : ncclInternalError);
}

ncclResult_t pncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return init_here("ncclCommInitRank", comm, ranks, id, rank);
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                     ncclConfig_t* config) {
  return init_here("ncclCommInitRankConfig", comm, ranks, id, rank, config);
}

ncclResult_t pncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int id_count,
                                       ncclUniqueId* ids, ncclConfig_t* config) {
  if (ids == nullptr || id_count < 1) return ncclInvalidArgument;
  return init_here("ncclCommInitRankScalable", comm, ranks, ids[0], rank, config);
}

ncclResult_t pncclCommInitAll(ncclComm_t* handles, int count, const int* devices) {
  ApiScope scope("ncclCommInitAll");
  if (sim_core() == nullptr) return scope.finish(ncclUnhandledCudaError);
  if (handles == nullptr || count < 1 || count > sim_core()->device_count()) {
    return scope.finish(ncclInvalidArgument);
  }
  ncclUniqueId id;
  pncclGetUniqueId(&id);
  pncclGroupStart();
  for (int i = 0; i < count; ++i) {
    init_rank(&handles[i], count, id, i, devices == nullptr ? i : devices[i]);
  }
  const ncclResult_t result = pncclGroupEnd();
  const auto made = result == ncclSuccess ? find_comm(handles[0]) : nullptr;
  if (made && nvtx_release() == NvtxRelease::k2_28) {
    scope.made(nvtx_fields_of_all(made->hash, count));
  }
  return scope.finish(result);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  ApiScope scope("ncclCommFinalize");
  const auto state = find_comm(comm);
  if (state == nullptr) return scope.finish(ncclInvalidArgument);
  drain(*state);
  return scope.finish(ncclSuccess);
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  const auto state = find_comm(comm);
  ApiScope scope("ncclCommDestroy", state == nullptr ? NvtxFields{} : nvtx_fields(*state));
  return scope.finish(take_down(comm, false));
}

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  const auto state = find_comm(comm);
  ApiScope scope("ncclCommAbort", state == nullptr ? NvtxFields{} : nvtx_fields(*state));
  return scope.finish(take_down(comm, true));
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const auto state = find_comm(comm);
  if (state == nullptr || error == nullptr) return ncclInvalidArgument;
  *error = state->async_error.load();
  return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int* out) {
  return get(comm, out, [](const CommState& s) { return s.ranks; });
}
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* out) {
  return get(comm, out, [](const CommState& s) { return s.device; });
}
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* out) {
  return get(comm, out, [](const CommState& s) { return s.rank; });
}

__attribute__((weak, alias("pncclGetUniqueId"))) decltype(pncclGetUniqueId) ncclGetUniqueId;
__attribute__((weak, alias("pncclCommInitRank"))) decltype(pncclCommInitRank) ncclCommInitRank;
__attribute__((
    weak,
    alias("pncclCommInitRankConfig"))) decltype(pncclCommInitRankConfig) ncclCommInitRankConfig;
__attribute__((weak, alias("pncclCommInitRankScalable"))) decltype(pncclCommInitRankScalable)
    ncclCommInitRankScalable;
__attribute__((weak, alias("pncclCommInitAll"))) decltype(pncclCommInitAll) ncclCommInitAll;
__attribute__((weak, alias("pncclCommFinalize"))) decltype(pncclCommFinalize) ncclCommFinalize;
__attribute__((weak, alias("pncclCommDestroy"))) decltype(pncclCommDestroy) ncclCommDestroy;
__attribute__((weak, alias("pncclCommAbort"))) decltype(pncclCommAbort) ncclCommAbort;
__attribute__((
    weak, alias("pncclCommGetAsyncError"))) decltype(pncclCommGetAsyncError) ncclCommGetAsyncError;
__attribute__((weak, alias("pncclCommCount"))) decltype(pncclCommCount) ncclCommCount;
__attribute__((weak, alias("pncclCommCuDevice"))) decltype(pncclCommCuDevice) ncclCommCuDevice;
__attribute__((weak, alias("pncclCommUserRank"))) decltype(pncclCommUserRank) ncclCommUserRank;

}  // extern "C"
