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

// The new communicator's place: ranks of the same color, ordered by key, then by old rank.
void place(CommState& made, const CommState& parent, const std::vector<SplitChoice>& choices) {
  const int color = choices[static_cast<size_t>(parent.rank)].color;
  std::vector<int> members;
  for (int rank = 0; rank < parent.ranks; ++rank) {
    if (choices[static_cast<size_t>(rank)].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return choices[static_cast<size_t>(a)].key < choices[static_cast<size_t>(b)].key;
  });
  const auto mine = std::find(members.begin(), members.end(), parent.rank);
  made.rank = static_cast<int>(mine - members.begin());
  made.ranks = static_cast<int>(members.size());
}

ncclResult_t split(const std::shared_ptr<CommState>& parent, int color, int key, ncclComm_t* out,
                   const ncclConfig_t* config) {
  if (out == nullptr || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) return ncclInvalidArgument;
  const uint64_t number = parent->splits.fetch_add(1);
  parent->rendezvous->split(number, parent->rank).put(number, pack({color, key}));
  *out = nullptr;
  auto state = make_comm_state(0, 0, parent->device);
  state->blocking = is_blocking(config, parent.get());
  if (color == NCCL_SPLIT_NOCOLOR) {  // takes part, and gets none
    const auto take_part = [=] {
      std::vector<SplitChoice> choices;
      return read_choices(*parent, number, &choices) ? ncclSuccess : ncclSystemError;
    };
    return defer_or_run({parent, take_part, [] { return ncclSuccess; }});
  }
  const auto now = [=] {
    std::vector<SplitChoice> choices;
    if (!read_choices(*parent, number, &choices)) return ncclSystemError;
    place(*state, *parent, choices);
    return enter_comm(*state, fmt::format("{}_{}c{}", parent->rendezvous->name(), number, color));
  };
  return make_comm(state, out, now, parent);
}

ncclResult_t shrink(const std::shared_ptr<CommState>& parent, std::span<const int> excluded,
                    ncclComm_t* out, const ncclConfig_t* config) {
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
  state->blocking = is_blocking(config, parent.get());
  return make_comm(
      state, out, [=] { return enter_comm(*state, name); }, parent);
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out,
                            ncclConfig_t* config) {
  ApiScope scope("ncclCommSplit");
  const auto parent = find_comm(comm);
  const ncclResult_t busy = parent == nullptr ? ncclInvalidArgument : ensure_ready(*parent);
  const ncclResult_t result = busy ? busy : split(parent, color, key, out, config);
  const auto made = result == ncclSuccess ? find_comm(*out) : nullptr;
  if (made && made->made.load() && nvtx_release() == NvtxRelease::k2_28) {
    scope.made(nvtx_fields_of_split(*made, *parent, color, key));
  }
  return scope.finish(result);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* out,
                             ncclConfig_t* config, int) {
  ApiScope scope("ncclCommShrink");
  const auto parent = find_comm(comm);
  if (parent == nullptr || count < 1 || excluded == nullptr)
    return scope.finish(ncclInvalidArgument);
  if (const ncclResult_t busy = ensure_ready(*parent)) return scope.finish(busy);
  return scope.finish(shrink(parent, {excluded, static_cast<size_t>(count)}, out, config));
}

__attribute__((weak, alias("pncclCommShrink"))) decltype(pncclCommShrink) ncclCommShrink;
__attribute__((weak, alias("pncclCommSplit"))) decltype(pncclCommSplit) ncclCommSplit;

}  // extern "C"
