// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/nccl/payload.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace gpuprof::simcuda {
namespace {

template <typename T>
T combined(T a, T b, int op) {
  switch (op) {
    case ncclProd: return static_cast<T>(a * b);
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
    default: return static_cast<T>(a + b);
  }
}

// `source(rank)`: what that rank sent. Values lie where they may, not on their boundaries.
template <typename T, typename Source>
void reduce_as(const CollectiveCall& call, int ranks, const Source& source) {
  for (size_t i = 0; i < call.count; ++i) {
    const auto value = [&](int rank) {
      T out;
      std::memcpy(&out, source(rank) + i * sizeof(T), sizeof(T));
      return out;
    };
    T sum = value(0);
    for (int rank = 1; rank < ranks; ++rank) sum = combined(sum, value(rank), call.op);
    if (call.op == ncclAvg) sum = static_cast<T>(sum / static_cast<T>(ranks));
    std::memcpy(static_cast<std::byte*>(call.receive) + i * sizeof(T), &sum, sizeof(T));
  }
}

template <typename Source>
void reduce(const CollectiveCall& call, int ranks, const Source& source) {
  switch (call.type) {
    case ncclInt8: return reduce_as<int8_t>(call, ranks, source);
    case ncclUint8: return reduce_as<uint8_t>(call, ranks, source);
    case ncclInt32: return reduce_as<int32_t>(call, ranks, source);
    case ncclUint32: return reduce_as<uint32_t>(call, ranks, source);
    case ncclInt64: return reduce_as<int64_t>(call, ranks, source);
    case ncclUint64: return reduce_as<uint64_t>(call, ranks, source);
    case ncclFloat32: return reduce_as<float>(call, ranks, source);
    case ncclFloat64: return reduce_as<double>(call, ranks, source);
    default: return;
  }
}

bool reduces(OpCode code) {
  return code == OpCode::kAllReduce || code == OpCode::kReduce || code == OpCode::kReduceScatter;
}

bool can_move(const CollectiveCall& call) {
  if (is_message(call.code)) return false;
  if (!reduces(call.code)) return true;
  const bool known_type = type_bytes(call.type) >= 4 || call.type <= ncclUint8;
  return known_type && call.op <= ncclAvg;
}

size_t own_bytes(const CollectiveCall& call) { return call.count * type_bytes(call.type); }

// What each rank hands over; of a collective with a root, all do as the root does.
size_t sent_bytes(const CollectiveCall& call, int ranks) {
  const bool for_each = call.code == OpCode::kReduceScatter || call.code == OpCode::kAlltoAll ||
                        call.code == OpCode::kScatter;
  return own_bytes(call) * (for_each ? static_cast<size_t>(ranks) : 1);
}

bool receives(const CollectiveCall& call, int rank) {
  return (call.code != OpCode::kReduce && call.code != OpCode::kGather) || call.root == rank;
}

size_t received_bytes(const CollectiveCall& call, int ranks) {
  const bool of_each = call.code == OpCode::kAllGather || call.code == OpCode::kAlltoAll ||
                       call.code == OpCode::kGather;
  return own_bytes(call) * (of_each ? static_cast<size_t>(ranks) : 1);
}

// Calls `visit(call, offset)` for the calls whose payloads fit: the same ones on all ranks.
template <typename Visit>
void each_moved(const std::vector<CollectiveCall>& calls, int ranks, const Visit& visit) {
  size_t offset = 0;
  for (const CollectiveCall& call : calls) {
    const size_t bytes = sent_bytes(call, ranks);
    if (!can_move(call) || bytes > kPayloadBytes - offset) continue;
    visit(call, offset);
    offset += bytes;
  }
}

template <typename Source>
void take(const CollectiveCall& call, int rank, int ranks, const Source& source) {
  auto* const to = static_cast<std::byte*>(call.receive);
  const size_t own = own_bytes(call);
  const size_t mine = own * static_cast<size_t>(rank);
  switch (call.code) {
    case OpCode::kBroadcast: std::memcpy(to, source(call.root), own); return;
    case OpCode::kScatter: std::memcpy(to, source(call.root) + mine, own); return;
    case OpCode::kAllGather:
    case OpCode::kGather:
    case OpCode::kAlltoAll:
      for (int from = 0; from < ranks; ++from) {
        std::memcpy(to + own * static_cast<size_t>(from),
                    source(from) + (call.code == OpCode::kAlltoAll ? mine : 0), own);
      }
      return;
    case OpCode::kReduceScatter:
      return reduce(call, ranks, [&](int from) { return source(from) + mine; });
    case OpCode::kAllReduce:
    case OpCode::kReduce: return reduce(call, ranks, source);
    case OpCode::kSend:
    case OpCode::kRecv: return;
  }
}

}  // namespace

void put_payloads(const std::vector<CollectiveCall>& calls, const CommState& comm,
                  uint64_t collective) {
  std::byte* const slot = comm.rendezvous->payload(collective, comm.rank);
  each_moved(calls, comm.ranks, [&](const CollectiveCall& call, size_t offset) {
    const size_t bytes = sent_bytes(call, comm.ranks);
    if (sim_core()->is_known(call.send, bytes)) {
      std::memcpy(slot + offset, call.send, bytes);
    } else {
      std::memset(slot + offset, 0, bytes);  // not memory of a GPU: nothing to read
    }
  });
}

void take_payloads(const std::vector<CollectiveCall>& calls, const CommState& comm,
                   uint64_t collective) {
  each_moved(calls, comm.ranks, [&](const CollectiveCall& call, size_t offset) {
    const size_t bytes = received_bytes(call, comm.ranks);
    if (!receives(call, comm.rank) || !sim_core()->is_known(call.receive, bytes)) return;
    take(call, comm.rank, comm.ranks,
         [&](int from) { return comm.rendezvous->payload(collective, from) + offset; });
  });
}

}  // namespace gpuprof::simcuda
