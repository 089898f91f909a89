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
// with lengths what this rank gives to all. 0: not known.
uint64_t element_count(const CollectiveArgs& args, const nlohmann::json& members) {
  const uint64_t in = count_in(members, "In msg nelems"), got = count_in(members, "Out msg nelems");
  if (args.function == "all_to_allv") return in;
  const uint64_t count = in && got ? std::min(in, got) : std::max(in, got);
  if (args.function != "ncclAlltoAll") return count;
  return args.group_size ? count / args.group_size : 0;
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
  const uint64_t size = count_in(members, "Group size");
  out.group_size = static_cast<uint32_t>(size && size <= kMostRanks ? size : ranks_in(members));
  out.bytes = element_count(out, members) * bytes_of(text_in(members, "dtype"));
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
