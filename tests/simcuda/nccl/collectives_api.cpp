// SPDX-License-Identifier: Apache-2.0
// The exported collectives and messages. What of their data is moved says payload.h.
#include "tests/simcuda/nccl/api_scope.h"
#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {
namespace {

bool in_range(int rank, const CommState& comm) { return rank >= 0 && rank < comm.ranks; }

bool valid(const CollectiveCall& call, const CommState& comm) {
  const bool rooted = call.code == OpCode::kBroadcast || call.code == OpCode::kReduce ||
                      call.code == OpCode::kGather || call.code == OpCode::kScatter;
  if (rooted && !in_range(call.root, comm)) return false;
  if (is_message(call.code) && !in_range(call.peer, comm)) return false;
  return call.type >= 0 && call.type < ncclNumTypes;
}

ncclResult_t run(const char* name, const CollectiveCall& call, ncclComm_t handle,
                 cudaStream_t stream) {
  const auto comm = find_comm(handle);
  ApiScope scope(name, nvtx_fields(call, comm == nullptr ? 0 : comm->hash));
  if (comm == nullptr) return scope.finish(ncclInvalidArgument);
  if (const ncclResult_t busy = ensure_ready(*comm)) return scope.finish(busy);
  if (!comm->made.load()) return scope.finish(ncclInvalidArgument);
  scope.describe(call, handle, *comm, stream, comm->calls.fetch_add(1));
  if (!valid(call, *comm)) return scope.finish(ncclInvalidArgument);
  return scope.finish(add_to_group(FusedWork{comm, stream, {call}}));
}

CollectiveCall make(OpCode code, const void* send, void* receive, size_t count,
                    ncclDataType_t type) {
  CollectiveCall call;
  call.code = code;
  call.send = send;
  call.receive = receive;
  call.count = count;
  call.type = type;
  return call;
}

CollectiveCall reduction(OpCode code, const void* send, void* receive, size_t count,
                         ncclDataType_t type, ncclRedOp_t op, int root = -1) {
  CollectiveCall call = make(code, send, receive, count, type);
  call.op = static_cast<int>(op);
  call.root = root;
  return call;
}

CollectiveCall rooted(OpCode code, const void* send, void* receive, size_t count,
                      ncclDataType_t type, int root) {
  CollectiveCall call = make(code, send, receive, count, type);
  call.root = root;
  return call;
}

CollectiveCall message(OpCode code, const void* send, void* receive, size_t count,
                       ncclDataType_t type, int peer) {
  CollectiveCall call = make(code, send, receive, count, type);
  call.peer = peer;
  return call;
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

ncclResult_t pncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAllReduce", reduction(OpCode::kAllReduce, send, receive, count, type, op), comm,
             stream);
}

ncclResult_t pncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduce", reduction(OpCode::kReduce, send, receive, count, type, op, root), comm,
             stream);
}

ncclResult_t pncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclReduceScatter", reduction(OpCode::kReduceScatter, send, receive, count, type, op),
             comm, stream);
}

ncclResult_t pncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                            int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclBroadcast", rooted(OpCode::kBroadcast, send, receive, count, type, root), comm,
             stream);
}

ncclResult_t pncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                            ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAllGather", make(OpCode::kAllGather, send, receive, count, type), comm, stream);
}

ncclResult_t pncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return run("ncclAlltoAll", make(OpCode::kAlltoAll, send, receive, count, type), comm, stream);
}

ncclResult_t pncclGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclGather", rooted(OpCode::kGather, send, receive, count, type, root), comm, stream);
}

ncclResult_t pncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                          int root, ncclComm_t comm, cudaStream_t stream) {
  return run("ncclScatter", rooted(OpCode::kScatter, send, receive, count, type, root), comm,
             stream);
}

ncclResult_t pncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                       ncclComm_t comm, cudaStream_t stream) {
  return run("ncclSend", message(OpCode::kSend, send, nullptr, count, type, peer), comm, stream);
}

ncclResult_t pncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return run("ncclRecv", message(OpCode::kRecv, nullptr, receive, count, type, peer), comm, stream);
}

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 32, 0)
// NCCL 2.32: the same with a configuration of the call (nccl.h, ncclCollConfig_t), which changes no
// result.
ncclResult_t ncclAllReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                 const void*) {
  return run("ncclAllReduceConfig", reduction(OpCode::kAllReduce, send, receive, count, type, op),
             comm, stream);
}

ncclResult_t ncclReduceScatterConfig(const void* send, void* receive, size_t count,
                                     ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     cudaStream_t stream, const void*) {
  return run("ncclReduceScatterConfig",
             reduction(OpCode::kReduceScatter, send, receive, count, type, op), comm, stream);
}

ncclResult_t ncclReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const void*) {
  return run("ncclReduceConfig", reduction(OpCode::kReduce, send, receive, count, type, op, root),
             comm, stream);
}

ncclResult_t ncclBroadcastConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                                 int root, ncclComm_t comm, cudaStream_t stream, const void*) {
  return run("ncclBroadcastConfig", rooted(OpCode::kBroadcast, send, receive, count, type, root),
             comm, stream);
}

ncclResult_t ncclGatherConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                              int root, ncclComm_t comm, cudaStream_t stream, const void*) {
  return run("ncclGatherConfig", rooted(OpCode::kGather, send, receive, count, type, root), comm,
             stream);
}

ncclResult_t ncclScatterConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                               int root, ncclComm_t comm, cudaStream_t stream, const void*) {
  return run("ncclScatterConfig", rooted(OpCode::kScatter, send, receive, count, type, root), comm,
             stream);
}

ncclResult_t ncclAllGatherConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                                 ncclComm_t comm, cudaStream_t stream, const void*) {
  return run("ncclAllGatherConfig", make(OpCode::kAllGather, send, receive, count, type), comm,
             stream);
}

ncclResult_t ncclAlltoAllConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                                ncclComm_t comm, cudaStream_t stream, const void*) {
  return run("ncclAlltoAllConfig", make(OpCode::kAlltoAll, send, receive, count, type), comm,
             stream);
}
#endif

// Through the exported name, as the real library does: an interposer sees both.
ncclResult_t pncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  // NCCL's has no range of its own; this one has, so that ranges lie in one another.
  const auto found = find_comm(comm);
  const CollectiveCall call = rooted(OpCode::kBroadcast, buffer, buffer, count, type, root);
  ApiScope scope("ncclBcast", nvtx_fields(call, found == nullptr ? 0 : found->hash));
  if (found == nullptr) return scope.finish(ncclInvalidArgument);
  scope.describe(call, comm, *found, stream, found->calls.load());
  return scope.finish(ncclBroadcast(buffer, buffer, count, type, root, comm, stream));
}

__attribute__((weak, alias("pncclAllReduce"))) decltype(pncclAllReduce) ncclAllReduce;
__attribute__((weak, alias("pncclReduce"))) decltype(pncclReduce) ncclReduce;
__attribute__((weak, alias("pncclReduceScatter"))) decltype(pncclReduceScatter) ncclReduceScatter;
__attribute__((weak, alias("pncclBroadcast"))) decltype(pncclBroadcast) ncclBroadcast;
__attribute__((weak, alias("pncclAllGather"))) decltype(pncclAllGather) ncclAllGather;
__attribute__((weak, alias("pncclAlltoAll"))) decltype(pncclAlltoAll) ncclAlltoAll;
__attribute__((weak, alias("pncclGather"))) decltype(pncclGather) ncclGather;
__attribute__((weak, alias("pncclScatter"))) decltype(pncclScatter) ncclScatter;
__attribute__((weak, alias("pncclSend"))) decltype(pncclSend) ncclSend;
__attribute__((weak, alias("pncclRecv"))) decltype(pncclRecv) ncclRecv;
__attribute__((weak, alias("pncclBcast"))) decltype(pncclBcast) ncclBcast;

}  // extern "C"
