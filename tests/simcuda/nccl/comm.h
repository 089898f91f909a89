// SPDX-License-Identifier: Apache-2.0
// A communicator of the simulated NCCL, and the operations that wait on it.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simcuda/core/port.h"
#include "tests/simcuda/nccl/rendezvous.h"

namespace gpuprof::simcuda {

// What gates need of a communicator; outlives its handle.
struct CommState {
  std::shared_ptr<Rendezvous> rendezvous;
  int rank = 0;
  int ranks = 1;
  int device = 0;
  uint64_t hash = 0;  // the same on all ranks
  uint64_t seed = 0;
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> splits{0};
  std::atomic<uint64_t> shrinks{0};
  std::atomic<bool> aborted{false};
  bool blocking = true;
  std::atomic<bool> made{false};  // rank and size are known from then on
  std::atomic<ncclResult_t> async_error{ncclSuccess};

  // Work is numbered when it is enqueued, and starts in that order. Under the core's lock.
  std::atomic<uint64_t> enqueued{0};
  uint64_t collectives = 0;
  std::array<uint64_t, kMaxRanks> sent{};
  std::array<uint64_t, kMaxRanks> received{};
  std::atomic<uint64_t> resolved{0};
  uint64_t last_end = 0;
};

enum class OpCode : uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAlltoAll,
  kGather,
  kScatter,
  kSend,
  kRecv,
};

// One call as the program made it.
struct CollectiveCall {
  OpCode code = OpCode::kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat;
  int op = -1;
  int root = -1;
  int peer = -1;
};

// What runs as one kernel: a group's calls on one communicator and stream.
struct FusedWork {
  std::shared_ptr<CommState> comm;
  cudaStream_t stream = nullptr;
  std::vector<CollectiveCall> calls;
  bool only_meets = false;  // ends when all ranks have come: others move the data
};

bool is_message(OpCode code);
size_t type_bytes(ncclDataType_t type);
uint64_t payload_bytes(const CollectiveCall& call, int ranks);
// How long the wires are busy once all ranks are there.
uint64_t transfer_ns(const CollectiveCall& call, int ranks);
std::string kernel_name(const std::vector<CollectiveCall>& calls);

std::shared_ptr<GateFactory> make_gate_factory(const FusedWork& work);

// The core in libcudart; nullptr when the simulated libcudart is not there.
SimCore* sim_core();

// Seconds until a missing rank is an error (SIMCUDA_NCCL_TIMEOUT_S, 60).
double timeout_seconds();

// Keeps resolving while operations wait for other ranks, whatever the host threads do.
void note_waiting_work();
void note_finished_work();

}  // namespace gpuprof::simcuda

// The type behind ncclComm_t.
struct ncclComm {
  std::shared_ptr<gpuprof::simcuda::CommState> state;
};

namespace gpuprof::simcuda {

std::shared_ptr<CommState> make_comm_state(int rank, int ranks, int device);
// Opens the region of that name and says that this rank is there.
ncclResult_t enter_comm(CommState& state, const std::string& name);
// ncclSystemError, with a line on stderr, when some do not come in time.
ncclResult_t wait_for_all_ranks(const CommState& state);
ncclComm_t publish_comm(std::shared_ptr<CommState> state);
void withdraw_comm(ncclComm_t handle);
// Whether a call on it may take time (ncclConfig_t::blocking, NCCL_COMM_BLOCKING).
bool is_blocking(const ncclConfig_t* config, const CommState* parent = nullptr);
// While an operation of one that is not blocking goes on, any other call is ncclInvalidArgument
// (NCCL, src/init.cc, ncclCommEnsureReady).
ncclResult_t ensure_ready(const CommState& comm);
// nullptr for a handle that is no live communicator.
std::shared_ptr<CommState> find_comm(ncclComm_t handle);

// Groups, per thread.
bool in_group();
ncclResult_t add_to_group(FusedWork work);
// `now` runs when the outermost group ends, `later` after all of the group's `now` have run.
struct DeferredInit {
  std::shared_ptr<CommState> comm;
  std::function<ncclResult_t()> now;
  std::function<ncclResult_t()> later;
};
ncclResult_t defer_or_run(DeferredInit init);
// Makes `state` known to the caller, and `init.later` its end. The handle is there before the
// communicator is, in a group too (NCCL, src/init.cc, ncclCommInitRankDev). That of a split or
// shrunk one is null until it is made, and its parent is busy (ncclCommInitChildComm).
ncclResult_t make_comm(std::shared_ptr<CommState> state, ncclComm_t* out,
                       std::function<ncclResult_t()> now,
                       const std::shared_ptr<CommState>& parent = nullptr);

}  // namespace gpuprof::simcuda
