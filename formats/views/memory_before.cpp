// SPDX-License-Identifier: Apache-2.0
#include "formats/views/memory_before.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "formats/views/memory_curves.h"
#include "formats/views/slices.h"

namespace gpuprof {
namespace {

enum class Memory { device, host, blocks };
constexpr size_t kMemories = 3;

struct Change {
  uint32_t place;  // of StepPlaces
  int64_t time;
  Memory memory;
  uint64_t address, bytes;
  bool release;
  EventIndex event;
};

class MemoryBefore {
 public:
  MemoryBefore(const Trace& trace, const Process& process) : trace_(trace), process_(process) {
    uint32_t gpu = Shape::kAbsent;  // what a call allocates on is not recorded
    for (const Lane& lane : process.lanes) {
      if (lane.type == LaneType::stream || lane.type == LaneType::device) {
        gpu = std::min(gpu, lane.device);
      }
    }
    first_gpu_ = gpu == Shape::kAbsent ? 0 : gpu;
    const LiveMemory* const log = process.live_at(LiveMoment::window_begins);
    for (size_t i = 0; log && i < log->allocations.size(); ++i) {
      const LiveAllocation& each = log->allocations[i];
      live_[index_of(memory_of(each))][each.address] = each;
    }
  }

  void apply(const Change& change) {
    const Event event = process_.event(change.event);
    const Shape& shape = trace_.shape(event);
    auto& live = live_[index_of(change.memory)];
    if (shape.kind == Kind::tensor) {
      totals_[{shape.device_type, shape.device_id}] += static_cast<int64_t>(change.bytes);
      if (change.address == 0) return;
    }
    auto& released = released_[index_of(change.memory)];
    if (!change.release) {
      live[change.address] = allocation(change, event, shape);
      released.erase(change.address);
    } else if (live.erase(change.address) == 0) {
      released.insert(change.address);
    }
  }

  void fill(Stretch& stretch) const {
    for (const auto& [address, each] : live_[index_of(Memory::device)]) {
      stretch.device.emplace(address, each.bytes);
    }
    for (const auto& [address, each] : live_[index_of(Memory::host)]) {
      stretch.host.emplace(address, each.bytes);
    }
    for (const auto& [device, bytes] : totals_) {
      stretch.tensors.push_back({device.first, device.second, bytes});
    }
  }

  LiveMemory list(int64_t time) const {
    LiveMemory out{LiveMoment::window_begins, time, {}, {}, {}};
    for (const auto& live : live_) {
      for (const auto& [address, each] : live) out.allocations.push_back(each);
    }
    std::stable_sort(
        out.allocations.begin(), out.allocations.end(),
        [](const LiveAllocation& a, const LiveAllocation& b) { return a.address < b.address; });
    out.is_part = !process_.live_at(LiveMoment::window_begins);
    for (const Memory memory : {Memory::device, Memory::host, Memory::blocks}) {
      for (const uint64_t address : released_[index_of(memory)]) {
        out.released.push_back({address, memory == Memory::blocks});
      }
    }
    return out;
  }

 private:
  static size_t index_of(Memory memory) { return static_cast<size_t>(memory); }
  Memory memory_of(const LiveAllocation& each) const {
    if (each.is_block()) return Memory::blocks;
    return names_host_memory(trace_.text(each.api)) ? Memory::host : Memory::device;
  }

  LiveAllocation allocation(const Change& change, const Event& event, const Shape& shape) const {
    LiveAllocation out{change.time, change.address,        change.bytes,    StringIndex::empty,
                       first_gpu_,  process_.header.pid(), StackIndex::none};
    const bool recorded = is_gpu_kind(shape.kind);
    if (shape.kind == Kind::tensor) {
      out.device = is_gpu_memory(shape.device_type) ? shape.device_id : Shape::kAbsent;
    } else {
      out.api = recorded ? shape.label : shape.name;
      if (change.memory == Memory::host) out.device = Shape::kAbsent;
      if (recorded && change.memory == Memory::device) out.device = process_.lane(event).device;
    }
    // Of CUPTI's record: the call has the name and the stack.
    const bool called = recorded && event.partner != EventIndex::none;
    const Event call = called ? process_.event(event.partner) : event;
    if (called) out.api = trace_.shape(call).name;
    const Lane& lane = process_.lane(call);
    if (lane.type == LaneType::thread) out.thread = lane.thread_id;
    out.stack = process_.extra(call).stack;
    return out;
  }

  const Trace& trace_;
  const Process& process_;
  uint32_t first_gpu_;
  std::map<uint64_t, LiveAllocation> live_[kMemories];  // by address
  std::set<uint64_t> released_[kMemories];              // of what was allocated before the window
  std::map<std::pair<uint32_t, uint32_t>, int64_t> totals_;
};

std::vector<Change> changes_of(const Trace& trace, const Process& process,
                               const StepPlaces& places) {
  std::vector<Change> out;
  const MemoryChanges changes = memory_changes(trace, process);
  const auto add = [&](const MemoryChange& c, Memory memory) {
    out.push_back(
        {places.of(number(c.event)), c.time, memory, c.address, c.bytes, c.release, c.event});
  };
  for (const MemoryChange& c : changes.device) add(c, Memory::device);
  for (const MemoryChange& c : changes.host) add(c, Memory::host);
  for (const Lane& lane : process.lanes) {
    if (!lane.may_have(Kind::tensor)) continue;
    for (const Event event : process.lane_events(lane)) {
      if (trace.shape(event).kind != Kind::tensor) continue;
      const EventExtra& extra = process.extra(event);
      out.push_back({places.of(number(event.index)), event.begin, Memory::blocks, extra.address,
                     extra.bytes, static_cast<int64_t>(extra.bytes) < 0, event.index});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Change& a, const Change& b) {
    return std::pair(a.place, a.time) < std::pair(b.place, b.time);
  });
  return out;
}

}  // namespace

LiveMemory find_memory_before(const Trace& trace, const Process& process, const StepPlaces& places,
                              std::vector<Stretch>& stretches) {
  MemoryBefore before(trace, process);
  const std::vector<Change> changes = changes_of(trace, process, places);
  auto change = changes.begin();
  LiveMemory list{};
  for (Stretch& stretch : stretches) {
    const uint32_t place = places.at(stretch.begin);
    for (; change != changes.end() && change->place < place; ++change) before.apply(*change);
    before.fill(stretch);
    if (&stretch == stretches.data()) list = before.list(stretch.begin);
  }
  return list;
}

}  // namespace gpuprof
