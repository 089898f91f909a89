// SPDX-License-Identifier: Apache-2.0
// ncclCommSplit: ranks tell each other their color and key through the parent's region.
// ncclCommShrink: each remaining rank knows the excluded ones, which do not call it.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tests/simcuda/nccl/api_scope.h"
#include "tests/simcuda/nccl/comm.h"
#include "tests/simcuda/nccl/wait.h"

namespace gpuprof::simcuda {
namespace {

struct SplitChoice {
  int color;
  int key;
};

uint64_t pack(SplitChoice c) {
  return static_cast<uint64_t>(static_cast<uint32_t>(c.color)) << 32 | static_cast<uint32_t>(c.key);
}
SplitChoice unpack(uint64_t value) {
  return {static_cast<int>(value >> 32), static_cast<int>(value & 0xffffffffu)};
}

// All ranks' choices, or false after the timeout.
bool read_choices(const CommState& parent, uint64_t split, std::vector<SplitChoice>* choices) {
  for (int rank = 0; rank < parent.ranks; ++rank) {
    uint64_t value = 0;
    if (!wait_until([&] { return parent.rendezvous->split(split, rank).get(split, &value); })) {
      fmt::print(stderr, "simcuda: nccl: rank {} waited for rank {} in ncclCommSplit\n",
                 parent.rank, rank);
      return false;
    }
    choices->push_back(unpack(value));
  }
  return true;
}

// The new communicator's state: ranks of the same color, ordered by key, then by old rank.
std::shared_ptr<CommState> place(const CommState& parent, const std::vector<SplitChoice>& choices) {
  const int color = choices[static_cast<size_t>(parent.rank)].color;
  if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
  std::vector<int> members;
  for (int rank = 0; rank < parent.ranks; ++rank) {
    if (choices[static_cast<size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return choices[static_cast<size_t>(a)].key < choices[static_cast<size_t>(b)].key;
  });
  const auto mine = std::find(members.begin(), members.end(), parent.rank);
  return make_comm_state(static_cast<int>(mine - members.begin()), static_cast<int>(members.size()),
                         parent.device);
}

ncclResult_t split(const std::shared_ptr<CommState>& parent, int color, int key, ncclComm_t* out) {
  if (out == nullptr || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) return ncclInvalidArgument;
  const uint64_t number = parent->splits.fetch_add(1);
  parent->rendezvous->split(number, parent->rank).put(number, pack({color, key}));
  auto state = std::make_shared<std::shared_ptr<CommState>>();
  *out = nullptr;
  DeferredInit init;
  init.now = [=] {
    std::vector<SplitChoice> choices;
    if (!read_choices(*parent, number, &choices)) return ncclSystemError;
    *state = place(*parent, choices);
    if (*state == nullptr) return ncclSuccess;
    return enter_comm(**state, fmt::format("{}_{}c{}", parent->rendezvous->name(), number, color));
  };
  init.later = [=] {
    if (*state == nullptr) return ncclSuccess;
    const ncclResult_t result = wait_for_all_ranks(**state);
    if (result == ncclSuccess) *out = publish_comm(*state);
    return result;
  };
  return defer_or_run(std::move(init));
}

ncclResult_t shrink(const std::shared_ptr<CommState>& parent, std::span<const int> excluded,
                    ncclComm_t* out) {
  if (out == nullptr || std::ranges::count(excluded, parent->rank)) return ncclInvalidArgument;
  std::string name =
      fmt::format("{}_s{}", parent->rendezvous->name(), parent->shrinks.fetch_add(1));
  std::vector<int> members;
  for (int rank = 0; rank < parent->ranks; ++rank) {
    if (std::ranges::count(excluded, rank))
      name += fmt::format("x{}", rank);
    else
      members.push_back(rank);
  }
  const auto mine = std::ranges::find(members, parent->rank);
  const auto state = make_comm_state(static_cast<int>(mine - members.begin()),
                                     static_cast<int>(members.size()), parent->device);
  *out = nullptr;
  DeferredInit init;
  init.now = [=] { return enter_comm(*state, name); };
  init.later = [=] {
    const ncclResult_t result = wait_for_all_ranks(*state);
    if (result == ncclSuccess) *out = publish_comm(state);
    return result;
  };
  return defer_or_run(std::move(init));
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t*) {
  ApiScope scope("ncclCommSplit");
  const auto parent = find_comm(comm);
  const ncclResult_t result =
      parent == nullptr ? ncclInvalidArgument : split(parent, color, key, out);
  const auto made = result == ncclSuccess ? find_comm(*out) : nullptr;
  if (made && nvtx_release() == NvtxRelease::k2_28) {
    scope.made(nvtx_fields_of_split(*made, *parent, color, key));
  }
  return scope.finish(result);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* out,
                             ncclConfig_t*, int) {
  ApiScope scope("ncclCommShrink");
  const auto parent = find_comm(comm);
  if (parent == nullptr || count < 1 || excluded == nullptr)
    return scope.finish(ncclInvalidArgument);
  return scope.finish(shrink(parent, {excluded, static_cast<size_t>(count)}, out));
}

__attribute__((weak, alias("pncclCommShrink"))) decltype(pncclCommShrink) ncclCommShrink;
__attribute__((weak, alias("pncclCommSplit"))) decltype(pncclCommSplit) ncclCommSplit;

}  // extern "C"
