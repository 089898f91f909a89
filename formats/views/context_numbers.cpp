// SPDX-License-Identifier: Apache-2.0
#include "formats/views/context_numbers.h"

#include <algorithm>

namespace gpuprof {

ContextNumbers::ContextNumbers(const Process& process) {
  for (const Lane& lane : process.lanes) {
    if (lane.type == LaneType::stream) keys_.emplace_back(lane.device, lane.stream, lane.context);
  }
  std::sort(keys_.begin(), keys_.end());
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
}

size_t ContextNumbers::of(const Lane& stream) const {
  constexpr size_t kMost = 5;
  const auto place = [&](uint32_t context) {
    return std::lower_bound(keys_.begin(), keys_.end(), Key(stream.device, stream.stream, context));
  };
  return std::min(static_cast<size_t>(place(stream.context) - place(0)), kMost);
}

}  // namespace gpuprof
