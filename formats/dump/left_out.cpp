// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/left_out.h"

#include <utility>

namespace gpuprof {
namespace {

LanePart later_part(uint64_t begin, bool of_host, const LanePart& part) {
  LanePart later;
  later.shapes = part.shapes;
  later.stacks = part.stacks;
  part.each([&](RawEvent event) {
    if (of_host ? event.begin < begin : event.end <= begin) return true;
    if (event.extra) {
      later.extras.push_back(part.extras[event.extra - 1]);
      event.extra = static_cast<uint32_t>(later.extras.size());
    }
    later.add(event);
    return true;
  });
  return later;
}

}  // namespace

void leave_out_earlier(uint64_t begin, std::vector<OpenLane>& lanes, Process& process) {
  for (OpenLane& open : lanes) {
    const bool of_host = open.lane.type == LaneType::thread || open.lane.type == LaneType::other;
    open.count = 0;
    for (LanePart& part : open.parts) {
      part = later_part(begin, of_host, part);
      open.count += part.size();
    }
  }
  const auto is_earlier = [&](const auto& sample) {
    return static_cast<uint64_t>(sample.time) < begin;
  };
  std::erase_if(process.samples, is_earlier);
  std::erase_if(process.heap, is_earlier);
}

}  // namespace gpuprof
