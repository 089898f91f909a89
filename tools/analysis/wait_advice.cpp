// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/wait_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuprof::analysis {
namespace {

// By the end of a call's name, which the runtime, the driver and HIP have in common.
enum class Waits : uint8_t { for_stream, for_device, for_event, in_copy, in_release };
constexpr size_t kWaits = 5;

struct NamePart {
  std::string_view part;
  Waits waits;
};
constexpr NamePart kCalls[] = {
    {"StreamSynchronize", Waits::for_stream},
    {"DeviceSynchronize", Waits::for_device},
    {"CtxSynchronize", Waits::for_device},
    {"ThreadSynchronize", Waits::for_device},
    {"EventSynchronize", Waits::for_event},
    {"Memcpy", Waits::in_copy},
    {"Free", Waits::in_release},
};

constexpr const char* kAdvice[kWaits] = {
    "read what the GPU computes (.item(), .cpu(), print) every N steps",
    "replace waits for the whole device by stream waits on events",
    "wait for events only where the host needs the result, and as late as it can",
    "copy from and to pinned memory with non_blocking=True",
    "release memory outside of the steps, or by a caching allocator",
};

// PyTorch copies to the GPU from pageable memory by a copy and a wait for its stream.
bool has_blocking_copies_to_gpu(const Tables& tables) {
  return std::any_of(tables.copies.begin(), tables.copies.end(), [](const CopyRow& row) {
    return row.name.find("HtoD") != row.name.npos && 2 * row.asynchronous_us < row.total_us;
  });
}

}  // namespace

std::string wait_advice(const Tables& tables) {
  constexpr double kFairShare = 0.2;
  std::array<double, kWaits> waited{};
  double all = 0;
  for (const CallRow& row : tables.synchronizations) {
    all += row.total_us;
    for (const NamePart& call : kCalls) {
      if (row.name.find(call.part) == row.name.npos) continue;
      waited[static_cast<size_t>(call.waits)] += row.total_us;
      break;
    }
  }
  double& in_copies = waited[static_cast<size_t>(Waits::in_copy)];
  const double for_streams = waited[static_cast<size_t>(Waits::for_stream)];
  if (for_streams >= kFairShare * all && has_blocking_copies_to_gpu(tables)) {
    in_copies = std::max(in_copies, kFairShare * all);
  }
  std::vector<std::pair<double, const char*>> named;
  for (size_t i = 0; i < kWaits; ++i) {
    if (waited[i] > 0 && waited[i] >= kFairShare * all) named.emplace_back(waited[i], kAdvice[i]);
  }
  if (named.empty()) return {};
  std::stable_sort(named.begin(), named.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string_view> texts;
  for (const auto& [us, text] : named) texts.push_back(text);
  return fmt::format("Do not wait for the GPU in each step: {}.", fmt::join(texts, "; "));
}

}  // namespace gpuprof::analysis
