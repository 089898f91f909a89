// SPDX-License-Identifier: Apache-2.0
#include "formats/views/kineto_ids.h"

#include <algorithm>
#include <set>
#include <vector>

namespace gpuprof {
namespace {

constexpr uint32_t kPidStride = 1 << 22;  // Linux process ids are below this
constexpr uint32_t kOverheadPid = 2'000'000'000;

}  // namespace

std::map<ProcessKey, KinetoIds> assign_kineto_ids(std::span<const Process* const> processes) {
  std::map<ProcessKey, KinetoIds> ids;
  std::vector<ProcessKey> order;
  for (const Process* process : processes) {
    const auto [at, fresh] = ids.try_emplace(key_of(*process));
    if (fresh) order.push_back(at->first);
    for (const Lane& lane : process->lanes) {
      if (lane.type == LaneType::stream || lane.type == LaneType::device) {
        at->second.gpus[lane.device] = lane.device;
      }
    }
  }
  std::set<uint32_t> used;
  uint32_t next_gpu = 0;
  for (const ProcessKey& key : order) {
    for (auto& [device, pid] : ids[key].gpus) {
      if (order.size() > 1) pid = next_gpu++;
      used.insert(pid);
    }
  }
  uint32_t number = 0;
  for (const ProcessKey& key : order) {
    uint32_t pid = std::max(std::get<1>(key), 1u);
    while (!used.insert(pid).second) pid += kPidStride;
    ids[key].pid = pid;
    ids[key].overhead_pid = kOverheadPid + number++;
  }
  return ids;
}

}  // namespace gpuprof
