// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart/End: calls between them become one kernel per communicator and stream. With
// SIMCUDA_NCCL=ce copy engines do what they can instead, call by call.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tests/simcuda/nccl/api_scope.h"
#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {
namespace {

constexpr size_t kMaxMessagesPerGroup = kMessageSlots / 2;

// Never freed: calls arrive while threads are being torn down.
struct Group {
  int depth = 0;
  std::vector<FusedWork> works;
  std::vector<DeferredInit> inits;
};

Group& group() {
  static thread_local Group* mine = nullptr;
  if (mine == nullptr) {
    static std::mutex& mutex = *new std::mutex();
    static std::vector<Group*>& all = *new std::vector<Group*>();
    mine = new Group();
    const std::lock_guard<std::mutex> lock(mutex);
    all.push_back(mine);
  }
  return *mine;
}

bool launch_in_runtime_domain() {
  static const bool value = [] {
    const char* text = std::getenv("SIMCUDA_NCCL_LAUNCH");
    return text != nullptr && std::string_view(text) == "runtime";
  }();
  return value;
}

bool copy_engines() {
  static const bool value = [] {
    const char* text = std::getenv("SIMCUDA_NCCL");
    return text != nullptr && std::string_view(text) == "ce";
  }();
  return value;
}

// What they do (NCCL, src/ce_coll.cc, ncclCeImplemented).
bool by_copies(const CollectiveCall& call) {
  return call.code == OpCode::kAllGather || call.code == OpCode::kAlltoAll ||
         call.code == OpCode::kGather || call.code == OpCode::kScatter;
}

ExternalLaunch external(const FusedWork& work, ExternalKind kind) {
  ExternalLaunch out;
  out.kind = kind;
  out.stream = work.stream;
  out.device = work.comm->device;
  return out;
}

// A flag to each other rank, and a wait for theirs (ncclMemOpSync, ncclPrepUCSync). `work` is what
// the ranks agree on.
cudaError_t meet(const FusedWork& work) {
  constexpr uint64_t kFlagNs = 1500;
  ExternalLaunch flag = external(work, ExternalKind::copy);
  flag.bytes = sizeof(uint32_t);
  flag.duration = kFlagNs;
  cudaError_t result = cudaSuccess;
  for (int rank = 1; rank < work.comm->ranks && result == cudaSuccess; ++rank) {
    result = sim_core()->launch_external(flag);
  }
  if (result != cudaSuccess) return result;
  ExternalLaunch wait = external(work, ExternalKind::wait);
  wait.gate = make_gate_factory(work);
  return sim_core()->launch_external(wait);
}

// ncclCeAllGather and its like: all meet, each copies its part to the others, all meet again.
ncclResult_t copy(const FusedWork& work, const CollectiveCall& call) {
  const auto others = static_cast<uint64_t>(work.comm->ranks - 1);
  cudaError_t result = meet({work.comm, work.stream, {call}, true});
  const bool sends =
      call.root < 0 || (call.code == OpCode::kScatter) == (call.root == work.comm->rank);
  if (result == cudaSuccess && others > 0 && sends) {
    const bool one = call.code == OpCode::kGather;
    ExternalLaunch data = external(work, ExternalKind::copies);
    data.count = one ? 1 : others;
    data.bytes = data.count * call.count * type_bytes(call.type);
    data.duration = transfer_ns(call, work.comm->ranks);
    result = sim_core()->launch_external(data);
  }
  if (result == cudaSuccess) result = meet({work.comm, work.stream, {}, true});
  return result == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t launch(const FusedWork& work) {
  if (copy_engines() && std::ranges::all_of(work.calls, by_copies)) {
    ncclResult_t result = ncclSuccess;
    for (const CollectiveCall& call : work.calls) {
      if (result == ncclSuccess) result = copy(work, call);
    }
    return result;
  }
  const std::string name = kernel_name(work.calls);
  ExternalLaunch request;
  request.kernel_name = name.c_str();
  request.stream = work.stream;
  request.device = work.comm->device;
  request.grid = 24;
  request.block = 640;
  request.via_driver = !launch_in_runtime_domain();
  request.gate = make_gate_factory(work);
  return sim_core()->launch_external(request) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t run_inits(std::vector<DeferredInit> inits) {
  ncclResult_t result = ncclSuccess;
  const auto keep = [&result](ncclResult_t r) {
    if (result == ncclSuccess) result = r;
  };
  for (const DeferredInit& init : inits) keep(init.now());
  if (result != ncclSuccess) return result;
  for (const DeferredInit& init : inits) keep(init.later());
  return result;
}

// Joins the work of one communicator and stream, in the order of the first call of each.
ncclResult_t fuse(std::vector<FusedWork>& works, FusedWork work) {
  const auto same = std::find_if(works.begin(), works.end(), [&](const FusedWork& w) {
    return w.comm == work.comm && w.stream == work.stream;
  });
  if (same == works.end()) {
    works.push_back(std::move(work));
    return ncclSuccess;
  }
  if (same->calls.size() >= kMaxMessagesPerGroup && is_message(work.calls.front().code)) {
    fmt::print(stderr, "simcuda: nccl: more than {} messages in one group\n", kMaxMessagesPerGroup);
    return ncclInvalidUsage;
  }
  same->calls.insert(same->calls.end(), work.calls.begin(), work.calls.end());
  return ncclSuccess;
}

ncclResult_t do_all(const std::vector<FusedWork>& works, std::vector<DeferredInit> inits) {
  ncclResult_t result = run_inits(std::move(inits));
  for (const FusedWork& work : works) {
    const ncclResult_t launched = launch(work);
    if (result == ncclSuccess) result = launched;
  }
  return result;
}

// On communicators that are not blocking a thread of NCCL's does it, and ncclCommGetAsyncError
// tells how that goes on (NCCL, src/group.cc, groupLaunchNonBlocking; User Guide, "Group Calls").
ncclResult_t do_here_or_later(std::vector<FusedWork> works, std::vector<DeferredInit> inits) {
  std::vector<std::shared_ptr<CommState>> comms;
  for (const FusedWork& work : works) comms.push_back(work.comm);
  for (const DeferredInit& init : inits) comms.push_back(init.comm);
  if (std::ranges::all_of(comms, [](const auto& comm) { return comm->blocking; })) {
    return do_all(works, std::move(inits));
  }
  for (const auto& comm : comms) comm->async_error = ncclInProgress;
  std::thread([works = std::move(works), inits = std::move(inits), comms] {
    const ncclResult_t result = do_all(works, inits);
    for (const auto& comm : comms) comm->async_error = result;
  }).detach();
  return ncclInProgress;
}

ncclResult_t end_group() {
  Group& mine = group();
  if (mine.depth == 0) return ncclInvalidUsage;
  if (--mine.depth > 0) return ncclSuccess;
  return do_here_or_later(std::exchange(mine.works, {}), std::exchange(mine.inits, {}));
}

}  // namespace

bool in_group() { return group().depth > 0; }

ncclResult_t add_to_group(FusedWork work) {
  return in_group() ? fuse(group().works, std::move(work)) : do_here_or_later({work}, {});
}

ncclResult_t defer_or_run(DeferredInit init) {
  if (!in_group()) return do_here_or_later({}, {std::move(init)});
  group().inits.push_back(std::move(init));
  return ncclSuccess;
}

}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

ncclResult_t pncclGroupStart() {
  ApiScope scope("ncclGroupStart");
  ++group().depth;
  return scope.finish(ncclSuccess);
}

ncclResult_t pncclGroupEnd() {
  ApiScope scope("ncclGroupEnd");
  return scope.finish(end_group());
}

// Ends the group without doing what is in it (User Guide, "Group Calls": it "simulates").
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* info) {
  ApiScope scope("ncclGroupSimulateEnd");
  Group& mine = group();
  if (mine.depth == 0) return scope.finish(ncclInvalidUsage);
  if (--mine.depth == 0) {
    mine.works.clear();
    mine.inits.clear();
    if (info != nullptr) info->estimatedTime = 1;
  }
  return scope.finish(ncclSuccess);
}

__attribute__((
    weak, alias("pncclGroupSimulateEnd"))) decltype(pncclGroupSimulateEnd) ncclGroupSimulateEnd;
__attribute__((weak, alias("pncclGroupStart"))) ncclResult_t ncclGroupStart();
__attribute__((weak, alias("pncclGroupEnd"))) ncclResult_t ncclGroupEnd();

}  // extern "C"
