// SPDX-License-Identifier: Apache-2.0
// The cost model of collectives, and the names of their kernels as NCCL 2.28 has them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {
namespace {

constexpr uint64_t kLatencyNs = 8000;

// Bus bandwidth in GB/s, that is, bytes per ns.
double bus_bandwidth() {
  static const double value = [] {
    const char* text = std::getenv("SIMCUDA_NCCL_GBS");
    const double number = text == nullptr ? 0 : std::strtod(text, nullptr);
    return number > 0 ? number : 100.0;
  }();
  return value;
}

// Bytes over the bus per byte of payload.
double bus_factor(OpCode code, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (code) {
    case OpCode::kAllReduce: return 2 * others;
    case OpCode::kAllGather:
    case OpCode::kReduceScatter:
    case OpCode::kAlltoAll:
    case OpCode::kGather:
    case OpCode::kScatter: return others;
    default: return 1;
  }
}

const char* type_name(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return "u8";
    case ncclInt32:
    case ncclUint32: return "u32";
    case ncclInt64:
    case ncclUint64: return "u64";
    case ncclFloat16: return "f16";
    case ncclFloat64: return "f64";
    case ncclBfloat16: return "bf16";
    case ncclFloat8e4m3: return "f8e4m3";
    case ncclFloat8e5m2: return "f8e5m2";
    default: return "f32";
  }
}

std::string base_name(const CollectiveCall& call) {
  switch (call.code) {
    case OpCode::kAllReduce:
      return fmt::format("ncclDevKernel_AllReduce_Sum_{}_RING_LL", type_name(call.type));
    case OpCode::kReduceScatter:
      return fmt::format("ncclDevKernel_ReduceScatter_Sum_{}_RING_LL", type_name(call.type));
    case OpCode::kReduce:
      return fmt::format("ncclDevKernel_Reduce_Sum_{}_RING_LL", type_name(call.type));
    case OpCode::kBroadcast: return "ncclDevKernel_Broadcast_RING_LL";
    case OpCode::kAllGather: return "ncclDevKernel_AllGather_RING_LL";
    default: return "ncclDevKernel_SendRecv";
  }
}

}  // namespace

bool is_message(OpCode code) { return code == OpCode::kSend || code == OpCode::kRecv; }

size_t type_bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 4;
  }
}

uint64_t payload_bytes(const CollectiveCall& call, int ranks) {
  const uint64_t own = call.count * type_bytes(call.type);
  const bool per_rank = call.code == OpCode::kAllGather || call.code == OpCode::kReduceScatter ||
                        call.code == OpCode::kAlltoAll || call.code == OpCode::kGather ||
                        call.code == OpCode::kScatter;
  return per_rank ? own * static_cast<uint64_t>(ranks) : own;
}

uint64_t transfer_ns(const CollectiveCall& call, int ranks) {
  const double bytes = static_cast<double>(payload_bytes(call, ranks));
  return kLatencyNs + static_cast<uint64_t>(bytes * bus_factor(call.code, ranks) / bus_bandwidth());
}

std::string kernel_name(const std::vector<CollectiveCall>& calls) {
  const std::string first = base_name(calls.front());
  const bool same = std::all_of(calls.begin(), calls.end(),
                                [&](const CollectiveCall& c) { return base_name(c) == first; });
  const std::string name = same ? first : "ncclDevKernel_Generic";
  return fmt::format("_Z{}{}24ncclDevKernelArgsStorageILm4096EE", name.size(), name);
}

}  // namespace gpuprof::simcuda
