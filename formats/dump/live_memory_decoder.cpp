// SPDX-License-Identifier: Apache-2.0
#include "formats/dump/live_memory_decoder.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gpuprof {
namespace {

uint32_t device_of(uint32_t plus_one) { return plus_one ? plus_one - 1 : Shape::kAbsent; }

}  // namespace

const char* decode_live_memory(const dump::LiveMemory& in, Trace& trace, Process& process,
                               const std::function<uint64_t(uint64_t)>& frame_of) {
  if (in.moment() < static_cast<uint32_t>(LiveMoment::window_begins) ||
      in.moment() > static_cast<uint32_t>(LiveMoment::left)) {
    return "is of a moment that is not known; it was skipped";
  }
  const auto moment = static_cast<LiveMoment>(in.moment());
  const auto known = std::find_if(process.live_memory.begin(), process.live_memory.end(),
                                  [&](const LiveMemory& live) { return live.moment == moment; });
  const bool again = known != process.live_memory.end();
  // Of failed allocations the newest; of the other moments each one says the same.
  const uint32_t number = again && !known->failed.empty() ? known->failed[0].number : 0;
  if (again && in.failed().number() <= number) return nullptr;
  const int count = in.address_size();
  if (in.bytes_size() != count || in.given_size() != count || in.origin_size() != count ||
      in.thread_size() != count || (in.stack_size() != count && in.stack_size() != 0)) {
    return "has columns of different lengths; it was skipped";
  }
  std::vector<StackIndex> stacks{StackIndex::none};
  std::vector<uint64_t> frames;
  uint64_t frame = 0;
  int at = 0;
  for (const uint32_t depth : in.stack_depth()) {
    if (depth > static_cast<uint64_t>(in.stack_frame_size() - at)) return "has stacks that are cut";
    frames.clear();
    for (uint32_t i = 0; i < depth; ++i) {
      frame += static_cast<uint64_t>(in.stack_frame(at++));
      frames.push_back(frame_of(frame));
    }
    stacks.push_back(frames.empty() ? StackIndex::none : process.stacks.add(frames));
  }
  const auto stack_of = [&](uint32_t index) {
    return index < stacks.size() ? stacks[index] : StackIndex::none;
  };
  std::vector<std::pair<StringIndex, uint32_t>> origins;
  for (const dump::LiveOrigin& origin : in.origins()) {
    origins.emplace_back(trace.strings.intern(origin.api()), device_of(origin.device()));
  }
  LiveMemory out{moment, static_cast<int64_t>(in.time()), {}, {}, {}};
  uint64_t address = 0, time = 0;
  for (int i = 0; i < count; ++i) {
    address += static_cast<uint64_t>(in.address(i));
    time += static_cast<uint64_t>(in.given(i));
    if (in.origin(i) >= origins.size()) return "names an origin that is not there; it was skipped";
    const auto& [api, device] = origins[in.origin(i)];
    out.allocations.push_back({static_cast<int64_t>(time), address, in.bytes(i), api, device,
                               in.thread(i), stack_of(in.stack_size() ? in.stack(i) : 0)});
  }
  std::sort(out.allocations.begin(), out.allocations.end(),
            [](const LiveAllocation& a, const LiveAllocation& b) {
              if (a.address != b.address) return a.address < b.address;
              return a.is_block() != b.is_block() ? a.is_block() < b.is_block() : a.time > b.time;
            });
  // An address that was given back and given again while the table was read: the newest.
  const auto same = [](const LiveAllocation& a, const LiveAllocation& b) {
    return a.address == b.address && a.is_block() == b.is_block();
  };
  out.allocations.erase(std::unique(out.allocations.begin(), out.allocations.end(), same),
                        out.allocations.end());
  if (in.has_failed()) {
    const dump::FailedAllocation& failed = in.failed();
    out.failed.push_back({static_cast<int64_t>(failed.time()), failed.bytes(),
                          trace.strings.intern(failed.api()), device_of(failed.device()),
                          failed.thread(), failed.number(), stack_of(failed.stack())});
  }
  for (const dump::AllocatorTotals& each : in.allocator()) {
    out.allocators.push_back({each.device(), each.allocated(), each.reserved(), each.peak(),
                              static_cast<int64_t>(each.peak_time())});
  }
  if (again) {
    *known = std::move(out);
  } else {
    process.live_memory.push_back(std::move(out));
  }
  return nullptr;
}

void join_live_memory(const Trace& trace, Process& process) {
  for (LiveMemory& live : process.live_memory) {
    if (live.moment != LiveMoment::window_begins) continue;
    std::set<std::pair<uint64_t, int64_t>> late;  // address and time
    for (const LiveAllocation& allocation : live.allocations) {
      if (allocation.time >= process.window_begin)
        late.emplace(allocation.address, allocation.time);
    }
    if (late.empty()) continue;
    std::set<std::pair<uint64_t, int64_t>> recorded;
    for (const Event& event : process.events) {
      const Kind kind = trace.shape(event).kind;
      if (kind != Kind::alloc && kind != Kind::tensor) continue;
      const std::pair key{process.extra(event).address, event.end};
      if (late.contains(key)) recorded.insert(key);
    }
    std::erase_if(live.allocations, [&](const LiveAllocation& allocation) {
      return recorded.contains({allocation.address, allocation.time});
    });
  }
}

}  // namespace gpuprof
