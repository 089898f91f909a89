// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/memory_owners.h"

#include <algorithm>
#include <map>

#include "tools/analysis/live_owners.h"
#include "tools/analysis/named_rows.h"

namespace gpuprof::analysis {
namespace {

// Of the allocator of a framework where it says addresses, else of the driver's calls.
const std::vector<MemoryPoint>& points_of(const Process& process, const MemoryCurves& curves) {
  for (const TensorCurve& curve : curves.tensors) {
    if (!is_gpu_memory(curve.device_type) || curve.points.empty()) continue;
    if (process.extra(process.event(curve.points.front().event)).address) return curve.points;
  }
  return curves.device;
}

}  // namespace

void MemoryOwners::note(EventIndex event, const std::string& owner, bool at_line) {
  const auto [at, fresh] = ids_.try_emplace(owner, static_cast<uint32_t>(names_.size()));
  if (fresh) names_.push_back(owner);
  if (at_line) at_lines_.insert(owner);
  owner_by_event_.emplace(number(event), at->second);
}

std::string MemoryOwners::owner_text(EventIndex event, const LiveAllocation* before) const {
  if (before) return owner_of(process_, *before);
  auto owner = owner_by_event_.find(number(event));
  // A record of CUPTI's is that of the call that caused it.
  if (owner == owner_by_event_.end()) {
    owner = owner_by_event_.find(number(process_.events.partner_of(number(event))));
  }
  return owner == owner_by_event_.end() ? "not known" : names_[owner->second];
}

std::vector<OwnerRow> MemoryOwners::at_peak(const MemoryCurves& curves) const {
  const std::vector<MemoryPoint>& points = points_of(process_, curves);
  const auto peak = std::max_element(
      points.begin(), points.end(),
      [](const MemoryPoint& a, const MemoryPoint& b) { return a.total < b.total; });
  if (peak == points.end()) return {};
  struct Held {
    EventIndex event;
    const LiveAllocation* before;  // of the memory log; else null
    int64_t bytes;
  };
  std::unordered_map<uint64_t, Held> live;  // by address
  int64_t known = 0;
  const bool blocks = &points != &curves.device;
  if (const LiveMemory* const log = process_.live_at(LiveMoment::window_begins)) {
    for (const LiveAllocation& each : log->allocations) {
      if (each.is_block() != blocks || each.device == Shape::kAbsent) continue;
      live[each.address] = {EventIndex::none, &each, static_cast<int64_t>(each.bytes)};
    }
  }
  for (auto at = points.begin(); at <= peak; ++at) {
    const uint64_t address = process_.extra(process_.event(at->event)).address;
    if (at->change > 0) {
      live[address] = {at->event, nullptr, at->change};
    } else {
      live.erase(address);
    }
  }
  std::map<std::string, OwnerRow> rows;
  for (const auto& [address, block] : live) {
    OwnerRow& row = rows[owner_text(block.event, block.before)];
    ++row.count;
    row.bytes += block.bytes;
    known += block.bytes;
  }
  if (peak->total > known) rows["before the window"].bytes += peak->total - known;
  return named_rows(std::move(rows), &OwnerRow::bytes);
}

// What a step leaves behind for the next ones is held until then; a leak stays.
std::vector<OwnerRow> MemoryOwners::kept(const MemoryCurves& curves,
                                         std::span<const Step> steps) const {
  if (steps.size() < 3) return {};
  const int64_t from = steps.front().end, to = steps.back().begin;
  std::unordered_map<uint64_t, const MemoryPoint*> live;  // by address
  for (const MemoryPoint& point : points_of(process_, curves)) {
    if (point.time >= steps.back().end) break;
    const uint64_t address = process_.extra(process_.event(point.event)).address;
    if (point.change <= 0) {
      live.erase(address);
    } else if (point.time >= from && point.time < to) {
      live[address] = &point;
    }
  }
  std::map<std::string, OwnerRow> rows;
  for (const auto& [address, point] : live) {
    const std::string owner = owner_text(point->event, nullptr);
    OwnerRow& row = rows[owner];
    row.at_line = at_lines_.contains(owner);
    ++row.count;
    row.bytes += point->change;
  }
  return named_rows(std::move(rows), &OwnerRow::bytes);
}

int64_t bytes_of(const std::vector<OwnerRow>& rows) {
  int64_t sum = 0;
  for (const OwnerRow& row : rows) sum += row.bytes;
  return sum;
}

}  // namespace gpuprof::analysis
