// SPDX-License-Identifier: Apache-2.0
// Which step of its process each event belongs to: the rules are in step_subset.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// A place is 2 i + 1 in step i of a list, 2 i between the step before and step i.
class StepPlaces {
 public:
  // `steps` in order of begin; it has to live as long.
  StepPlaces(const Trace& trace, const Process& process, std::span<const Step> steps);
  uint32_t of(size_t event) const { return places_[event]; }
  uint32_t at(int64_t time) const;

 private:
  void place_calls(const Trace& trace, const Lane& lane);
  void place_work(const Trace& trace, const Lane& lane);

  const Process& process_;
  std::span<const Step> steps_;
  std::vector<uint32_t> places_;  // by event
};

}  // namespace gpuprof
