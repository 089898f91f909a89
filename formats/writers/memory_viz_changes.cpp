// SPDX-License-Identifier: Apache-2.0
#include "formats/writers/memory_viz_changes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <utility>

#include "formats/trace/process_key.h"
#include "formats/views/kineto_ids.h"
#include "formats/views/memory_curves.h"

namespace gpuprof {
namespace {

using ChangesByGpu = std::map<uint32_t, std::vector<MemoryVizChange>>;

constexpr uint64_t kLargest = uint64_t{1} << 60;  // of memory; more is an error in the file
constexpr uint32_t kMostGpus = 1 << 16;           // a snapshot lists all up to the highest number

// Numbers of GPUs in the snapshot: those of their rows in JSON, where they have rows and the
// numbers are small, else the next free ones.
class GpuNumbers {
 public:
  explicit GpuNumbers(const Trace& trace) {
    std::vector<const Process*> processes;
    for (const Process& process : trace.processes) processes.push_back(&process);
    ids_ = assign_kineto_ids(processes);
    for (const auto& [key, ids] : ids_) {
      for (const auto& [device, gpu] : ids.gpus) {
        if (gpu < kMostGpus) used_.insert(gpu);
      }
    }
  }

  uint32_t of(const Process& process, uint32_t device) {
    const ProcessKey key = key_of(process);
    const auto [at, fresh] = numbers_.try_emplace({key, device});
    if (!fresh) return at->second;
    const std::map<uint32_t, uint32_t>& rows = ids_.at(key).gpus;
    const auto row = rows.find(device);
    if (row != rows.end() && row->second < kMostGpus) return at->second = row->second;
    const bool own = ids_.size() == 1 && device < kMostGpus && used_.insert(device).second;
    return at->second = own ? device : next_free();
  }

  // Of calls, which do not say.
  uint32_t first(const Process& process) {
    const std::map<uint32_t, uint32_t>& gpus = ids_.at(key_of(process)).gpus;
    return of(process, gpus.empty() ? 0 : gpus.begin()->first);
  }

 private:
  uint32_t next_free() {
    while (!used_.insert(next_).second) ++next_;
    return next_;
  }

  std::map<ProcessKey, KinetoIds> ids_;
  std::map<std::pair<ProcessKey, uint32_t>, uint32_t> numbers_;  // by device
  std::set<uint32_t> used_;
  uint32_t next_ = 0;
};

// Places for blocks of which the trace gives the size alone. Which of several blocks of one size a
// release is of does not change how much is allocated.
class MadeUpAddresses {
 public:
  // Of one device's changes, in order of time.
  uint64_t of(int64_t change) {
    std::vector<uint64_t>& blocks = open_[change < 0 ? -change : change];
    if (change < 0 && !blocks.empty()) {
      const uint64_t address = blocks.back();
      blocks.pop_back();
      return address;
    }
    const uint64_t address = next_;
    next_ += std::max<uint64_t>(static_cast<uint64_t>(change < 0 ? -change : change), 1);
    if (change >= 0) blocks.push_back(address);
    return address;  // of a release without a block: allocated before
  }
  void next_device() { open_.clear(); }

 private:
  // Above all addresses of programs, and doubles still tell its bytes apart.
  uint64_t next_ = uint64_t{1} << 50;
  std::unordered_map<int64_t, std::vector<uint64_t>> open_;  // by size
};

// What the window began with; without a window, what there was when memory ran out, or in the
// end.
const LiveMemory* earliest_live(const Process& process) {
  for (const LiveMoment moment :
       {LiveMoment::window_begins, LiveMoment::out_of_memory, LiveMoment::left}) {
    if (const LiveMemory* const live = process.live_at(moment)) return live;
  }
  return nullptr;
}

// What of one process is allocated, over its windows. A block that was released where no window
// shows it is so at the latest when another one lies at its address, or when the memory log's list
// lacks it.
class Blocks {
 public:
  explicit Blocks(ChangesByGpu& gpus) : gpus_(gpus) {}

  void change(uint32_t gpu, const MemoryVizChange& change) {
    const Key key{change.tensor, change.address};
    if (change.bytes > 0) {
      release(key, change.time);
      held_[key] = {gpu, change};
    } else {
      held_.erase(key);
    }
    gpus_[gpu].push_back(change);
  }

  // The list of a window's begin.
  void are(const LiveMemory& live, const Process& process, GpuNumbers& numbers) {
    std::set<Key> listed;
    bool tensors = false;  // the memory log follows a framework's blocks
    for (const LiveAllocation& each : live.allocations) {
      const Key key{each.is_block(), each.address};
      listed.insert(key);
      tensors = tensors || each.is_block();
      if (each.device == Shape::kAbsent || each.bytes > kLargest) continue;
      const auto bytes = static_cast<int64_t>(each.bytes);
      const auto held = held_.find(key);
      if (held != held_.end() && held->second.change.bytes == bytes) continue;
      change(numbers.of(process, each.device),
             {each.time, each.address, bytes, each.is_block(), &process, EventIndex::none, &each});
    }
    std::vector<Key> gone;
    for (const LiveMemory::Released& each : live.released)
      gone.push_back({each.block, each.address});
    for (const auto& [key, block] : held_) {
      if (live.is_part) break;
      if (!listed.contains(key) && (tensors || !block.change.tensor)) gone.push_back(key);
    }
    for (const Key& key : gone) release(key, live.time);
  }

 private:
  using Key = std::pair<bool, uint64_t>;  // a framework's, address
  struct Held {
    uint32_t gpu;
    MemoryVizChange change;
  };

  void release(const Key& key, int64_t time) {
    const auto held = held_.find(key);
    if (held == held_.end()) return;
    MemoryVizChange change = held->second.change;
    change.time = std::max(change.time, time);
    change.bytes = -change.bytes;
    gpus_[held->second.gpu].push_back(change);
    held_.erase(held);
  }

  ChangesByGpu& gpus_;
  std::map<Key, Held> held_;
};

using AddressRanges = std::map<uint64_t, uint64_t>;  // begin and end

bool contains(const AddressRanges& ranges, uint64_t begin, uint64_t end) {
  const auto after = ranges.upper_bound(begin);
  return after != ranges.begin() && std::prev(after)->second >= end;
}

AddressRanges merged(const AddressRanges& ranges) {
  AddressRanges out;
  for (const auto& [begin, end] : ranges) {
    if (!out.empty() && out.rbegin()->second >= begin) {
      out.rbegin()->second = std::max(out.rbegin()->second, end);
    } else {
      out.emplace(begin, end);
    }
  }
  return out;
}

void sort_by_time(std::vector<MemoryVizChange>& changes) {
  std::stable_sort(
      changes.begin(), changes.end(),
      [](const MemoryVizChange& a, const MemoryVizChange& b) { return a.time < b.time; });
}

void add_window(const Trace& trace, const Process& process, GpuNumbers& numbers,
                MadeUpAddresses& made_up, Blocks& blocks) {
  const MemoryCurves curves = memory_curves(trace, process);
  for (const MemoryPoint& point : curves.device) {
    const Event& event = process.event(point.event);
    const Lane& lane = process.lane(event);
    const uint32_t gpu =
        lane.type == LaneType::device ? numbers.of(process, lane.device) : numbers.first(process);
    blocks.change(gpu, {point.time, process.extra(event).address, point.change, false, &process,
                        point.event, nullptr});
  }
  for (const TensorCurve& curve : curves.tensors) {
    if (!is_gpu_memory(curve.device_type)) continue;
    const uint32_t gpu = numbers.of(process, curve.device_id);
    made_up.next_device();
    for (const MemoryPoint& point : curve.points) {
      uint64_t address = process.extra(process.event(point.event)).address;
      if (address == 0) address = made_up.of(point.change);
      blocks.change(gpu, {point.time, address, point.change, true, &process, point.event, nullptr});
    }
  }
}

}  // namespace

std::map<uint32_t, std::vector<MemoryVizChange>> memory_viz_changes(const Trace& trace) {
  ChangesByGpu gpus;
  GpuNumbers numbers(trace);
  MadeUpAddresses made_up;
  for (const auto& windows : by_process(trace)) {
    Blocks blocks(gpus);
    for (const Process* const process : windows) {
      if (const LiveMemory* const live = earliest_live(*process)) {
        blocks.are(*live, *process, numbers);
      }
      add_window(trace, *process, numbers, made_up, blocks);
    }
  }
  for (auto& [gpu, changes] : gpus) sort_by_time(changes);
  return gpus;
}

std::map<uint64_t, uint64_t> ranges_without_segment(const std::vector<MemoryVizChange>& changes) {
  AddressRanges segments, blocks, found;
  for (const MemoryVizChange& change : changes) {
    const bool released = change.bytes < 0;
    const uint64_t begin = change.address;
    const uint64_t end = begin + static_cast<uint64_t>(released ? -change.bytes : change.bytes);
    if (change.tensor) {
      if (!contains(segments, begin, end)) found[begin] = std::max(found[begin], end);
      if (released) {
        blocks.erase(begin);
      } else {
        blocks[begin] = end;
      }
    } else if (!released) {
      segments[begin] = end;
    } else if (segments.erase(begin)) {
      // What a trace says no release of stays.
      for (auto at = blocks.lower_bound(begin); at != blocks.end() && at->first < end; ++at) {
        found[at->first] = std::max(found[at->first], at->second);
      }
    }
  }
  return merged(found);
}

bool lacks_addresses(const Trace& trace) {
  for (const Process& process : trace.processes) {
    for (uint32_t i = 0; i < process.events.size(); ++i) {
      const Shape& shape = trace.shapes[process.events.shape_of(i)];
      if (shape.kind != Kind::tensor || !is_gpu_memory(shape.device_type)) continue;
      if (process.extra(process.events[i]).address == 0) return true;
    }
  }
  return false;
}

}  // namespace gpuprof
