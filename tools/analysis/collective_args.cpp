// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/collective_args.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/trace/names.h"

namespace gpuprof::analysis {
namespace {

constexpr uint64_t kMostRanks = 1 << 24;  // more is an error in the file

struct Spelling {
  std::string_view pytorch, nccl;
  bool uneven = false;  // it takes lists of tensors, or lengths, which need not be equal
};
// What PyTorch's process group calls them (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp), and
// torchcomms; those that NCCL has by several names, by one. Of tensors of several sizes PyTorch
// makes broadcasts or reductions in a group, or sends and receives.
constexpr Spelling kSpellings[] = {
    {"allreduce", "ncclAllReduce"},
    {"allreduce_coalesced", "ncclAllReduce"},
    {"all_reduce", "ncclAllReduce"},
    {"allgather", "ncclAllGather", true},
    {"all_gather", "ncclAllGather", true},
    {"all_gather_v", "ncclAllGather", true},
    {"all_gather_single", "ncclAllGather"},
    {"_allgather_base", "ncclAllGather"},
    {"allgather_into_tensor_coalesced", "ncclAllGather"},
    {"reduce_scatter", "ncclReduceScatter", true},
    {"reduce_scatter_v", "ncclReduceScatter", true},
    {"reduce_scatter_single", "ncclReduceScatter"},
    {"_reduce_scatter_base", "ncclReduceScatter"},
    {"reduce_scatter_tensor_coalesced", "ncclReduceScatter"},
    {"broadcast", "ncclBroadcast"},
    {"_broadcast_oop", "ncclBroadcast"},
    {"reduce", "ncclReduce"},
    {"_reduce_oop", "ncclReduce"},
    {"alltoall", "ncclAlltoAll"},
    {"all_to_all", "ncclAlltoAll"},
    {"all_to_all_single", "ncclAlltoAll"},
    {"all_to_allv", "all_to_allv", true},
    {"all_to_all_v_single", "all_to_allv", true},
    {"alltoallv", "all_to_allv", true},
    {"gather", "ncclGather"},
    {"gather_single", "ncclGather"},
    {"scatter", "ncclScatter"},
    {"send", "ncclSend"},
    {"recv", "ncclRecv"},
};

// Of an element (elementSize() in c10/core/ScalarType.h); 0: not known.
uint32_t bytes_of(std::string_view dtype) {
  struct Type {
    std::string_view name;
    uint32_t bytes;
  };
  static constexpr Type kTypes[] = {
      {"Byte", 1},
      {"Char", 1},
      {"Bool", 1},
      {"Short", 2},
      {"Int", 4},
      {"Long", 8},
      {"UInt16", 2},
      {"UInt32", 4},
      {"UInt64", 8},
      {"Half", 2},
      {"BFloat16", 2},
      {"Float", 4},
      {"Double", 8},
      {"ComplexHalf", 4},
      {"ComplexFloat", 8},
      {"ComplexDouble", 16},
      {"Float8_e5m2", 1},
      {"Float8_e5m2fnuz", 1},
      {"Float8_e4m3fn", 1},
      {"Float8_e4m3fnuz", 1},
      {"Float8_e8m0fnu", 1},
      {"Float4_e2m1fn_x2", 1},
      {"QInt8", 1},
      {"QUInt8", 1},
      {"QInt32", 4},
      {"QUInt4x2", 1},
      {"QUInt2x4", 1},
      {"Bits1x8", 1},
      {"Bits2x4", 1},
      {"Bits4x2", 1},
      {"Bits8", 1},
      {"Bits16", 2},
  };
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.bytes;
  }
  return 0;
}

std::optional<uint64_t> count_in(const nlohmann::json& members, const char* key) {
  const auto at = members.find(key);
  const bool known = at != members.end() && at->is_number_unsigned();
  return known ? std::optional(at->get<uint64_t>()) : std::nullopt;
}

std::string text_in(const nlohmann::json& members, const char* key) {
  const auto at = members.find(key);
  return at != members.end() && at->is_string() ? at->get<std::string>() : std::string();
}

int64_t rank_in(const nlohmann::json& members, const char* key) {
  const auto at = members.find(key);
  return at != members.end() && at->is_number_integer() ? at->get<int64_t>() : -1;
}

bool has_splits(const nlohmann::json& members) {
  const std::string list = text_in(members, "In split size");
  return list.find_first_of("0123456789") != std::string::npos;
}

// Of a list as text: "[0, 4]".
size_t ranks_in(const nlohmann::json& members) {
  const auto list = nlohmann::json::parse(text_in(members, "Process Group Ranks"), nullptr, false);
  return list.is_array() ? list.size() : 0;
}

// As NCCL counts. PyTorch gives the elements of whole tensors: of a gather the input, of a scatter
// the output is counted, which is the smaller one; of an all-to-all a rank's part of either; of one
// with lengths what this rank gives to all. Of an absent tensor it says 0.
std::optional<uint64_t> element_count(const CollectiveArgs& args, const nlohmann::json& members) {
  const auto in = count_in(members, "In msg nelems"), got = count_in(members, "Out msg nelems");
  if (args.function == "all_to_allv") return in;
  if (!in && !got) return std::nullopt;
  const uint64_t least = std::min(in.value_or(0), got.value_or(0));
  const uint64_t count = least ? least : std::max(in.value_or(0), got.value_or(0));
  if (args.function != "ncclAlltoAll") return count;
  return args.group_size ? std::optional(count / args.group_size) : std::nullopt;
}

}  // namespace

std::optional<CollectiveArgs> collective_in(std::string_view args) {
  if (args.find("\"Collective name\"") == std::string_view::npos) return std::nullopt;
  const auto members =
      nlohmann::json::parse("{" + std::string(args) + "}", nullptr, /*allow_exceptions=*/false);
  if (!members.is_object()) return std::nullopt;
  CollectiveArgs out;
  out.function = text_in(members, "Collective name");
  if (out.function.empty()) return std::nullopt;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.pytorch == out.function) {
      out.function = spelling.nccl;
      out.uneven = spelling.uneven;
      break;
    }
  }
  // PyTorch's all_to_all of a list of tensors says their lengths.
  if (out.function == "ncclAlltoAll" && has_splits(members)) out.function = "all_to_allv";
  out.uneven = out.uneven || out.function == "all_to_allv";
  const uint64_t size = count_in(members, "Group size").value_or(0);
  out.group_size = static_cast<uint32_t>(size && size <= kMostRanks ? size : ranks_in(members));
  out.elements = element_count(out, members);
  out.data_type = text_in(members, "dtype");
  const uint32_t size_of_type = bytes_of(out.data_type);
  if (out.elements && size_of_type) out.bytes = *out.elements * size_of_type;
  for (uint32_t type = 0; nccl_type(type).bytes; ++type) {
    if (nccl_type(type).scalar == out.data_type) out.data_type = nccl_type(type).nccl;
  }
  // PyTorch counts messages of a group together, whichever their ways.
  const bool message = out.function == "ncclSend" || out.function == "ncclRecv";
  if (!message) out.sequence = count_in(members, "Seq");
  out.group = text_in(members, "Process Group Name") + text_in(members, "Process Group Ranks");
  out.label = group_label(text_in(members, "Process Group Name"),
                          text_in(members, "Process Group Description"));
  if (out.label.starts_with("0x")) out.label.clear();  // a handle, where it has no name
  out.source = rank_in(members, "Src Rank");
  out.destination = rank_in(members, "Dst Rank");
  return out;
}

std::string common_name(const CollectiveArgs& args, int64_t own_rank) {
  const bool sends = args.function == "ncclSend", receives = args.function == "ncclRecv";
  if (!sends && !receives) return args.group.empty() ? "" : args.function + " " + args.group;
  const int64_t peer = sends ? args.destination : args.source;
  if (peer < 0 || own_rank < 0) return {};
  const std::string own = std::to_string(own_rank), other = std::to_string(peer);
  return sends ? own + " to " + other : other + " to " + own;
}

}  // namespace gpuprof::analysis
