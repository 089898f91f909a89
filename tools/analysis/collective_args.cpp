// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/collective_args.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/trace/names.h"

namespace gpuprof::analysis {
namespace {

struct Spelling {
  std::string_view pytorch, nccl;
};
// What PyTorch's process group calls them; those that NCCL has by several names, by one.
constexpr Spelling kSpellings[] = {
    {"allreduce", "ncclAllReduce"},
    {"allreduce_coalesced", "ncclAllReduce"},
    {"allgather", "ncclAllGather"},
    {"_allgather_base", "ncclAllGather"},
    {"allgather_into_tensor_coalesced", "ncclAllGather"},
    {"reduce_scatter", "ncclReduceScatter"},
    {"_reduce_scatter_base", "ncclReduceScatter"},
    {"reduce_scatter_tensor_coalesced", "ncclReduceScatter"},
    {"broadcast", "ncclBroadcast"},
    {"_broadcast_oop", "ncclBroadcast"},
    {"reduce", "ncclReduce"},
    {"_reduce_oop", "ncclReduce"},
    {"alltoall", "ncclAlltoAll"},
    {"all_to_all", "ncclAlltoAll"},
    {"gather", "ncclGather"},
    {"scatter", "ncclScatter"},
    {"send", "ncclSend"},
    {"recv", "ncclRecv"},
};

uint32_t bytes_of(std::string_view dtype) {
  for (uint32_t type = 0; nccl_type(type).bytes; ++type) {
    if (nccl_type(type).scalar == dtype) return nccl_type(type).bytes;
  }
  return 0;
}

uint64_t count_in(const nlohmann::json& members, const char* key) {
  const auto at = members.find(key);
  return at != members.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
}

std::string text_in(const nlohmann::json& members, const char* key) {
  const auto at = members.find(key);
  return at != members.end() && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace

std::optional<CollectiveArgs> collective_in(std::string_view args) {
  if (args.find("\"Collective name\"") == std::string_view::npos) return std::nullopt;
  const auto members =
      nlohmann::json::parse("{" + std::string(args) + "}", nullptr, /*allow_exceptions=*/false);
  if (!members.is_object()) return std::nullopt;
  CollectiveArgs out{text_in(members, "Collective name")};
  if (out.function.empty()) return std::nullopt;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.pytorch == out.function) {
      out.function = spelling.nccl;
      break;
    }
  }
  // Of a gather the input, of a scatter the output: the smaller one is what NCCL counts.
  const uint64_t in = count_in(members, "In msg nelems"), got = count_in(members, "Out msg nelems");
  out.bytes =
      (in && got ? std::min(in, got) : std::max(in, got)) * bytes_of(text_in(members, "dtype"));
  return out;
}

}  // namespace gpuprof::analysis
