// SPDX-License-Identifier: Apache-2.0
// Where each piece of a collective's work is to be found again on other ranks: by NCCL's calls,
// which dumps name, else by step and order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Ranks number their steps alike, and do the same collectives in the same order: those of the same
// group, or with the same peer, where that is known, else those on each of their communication
// streams.
struct Place {
  uint64_t step;    // 0: of calls that all ranks name alike, whose steps may be counted differently
  uint32_t stream;  // kByCall; kNamed and a name's number; or the how-manieth communication stream
  int64_t number;   // kByCall: the call's; else in the step, of that name or on that stream
  bool by_call() const { return stream == kByCall; }
  auto operator<=>(const Place&) const = default;

  static constexpr uint32_t kNamed = 1u << 31;
  static constexpr uint32_t kByCall = 0xfffffffe;
};

struct PlacedWork {
  Place place;
  uint64_t step;  // as its rank counts
  Work work;
};

struct Places {
  std::vector<std::vector<PlacedWork>> of_ranks;  // by timeline
  bool named = false;  // by calls, which all dumps name. What has no call stands by order
};
Places places_of(std::span<const Timeline> timelines);

}  // namespace gpuprof::analysis
