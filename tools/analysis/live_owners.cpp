// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/live_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/analysis/code_place.h"
#include "tools/analysis/named_rows.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

constexpr size_t kMostNamed = 3;

std::string step_text(const Process& process, int64_t time) {
  if (const Step* const step = process.step_at(time)) return fmt::format("in step {}", step->step);
  // The last step has no end in the log.
  if (!process.steps.empty() && time >= process.steps.back().end) {
    return fmt::format("in step {}", process.steps.back().step + 1);
  }
  return process.steps.empty() ? "in step 0" : "before the first step";
}

bool counts(const LiveAllocation& each, bool blocks) {
  return each.is_block() == blocks && each.device != Shape::kAbsent;
}

bool has_blocks(const LiveMemory& live) {
  return std::any_of(live.allocations.begin(), live.allocations.end(),
                     [](const LiveAllocation& each) { return counts(each, true); });
}

}  // namespace

std::string owner_of(const Process& process, const LiveAllocation& allocation) {
  const CodePlace place = memory_place(process.stacks, allocation.stack);
  return place.text.empty() ? "allocated " + step_text(process, allocation.time) : place.text;
}

std::vector<OwnerRow> live_owners(const Process& process, const LiveMemory& live) {
  const bool blocks = has_blocks(live);
  std::map<std::string, OwnerRow> rows;
  for (const LiveAllocation& each : live.allocations) {
    if (!counts(each, blocks)) continue;
    OwnerRow& row = rows[owner_of(process, each)];
    ++row.count;
    row.bytes += static_cast<int64_t>(each.bytes);
  }
  return named_rows(std::move(rows), &OwnerRow::bytes);
}

void out_of_memory(const Trace& trace, const Process& process, std::vector<Finding>& out) {
  const LiveMemory* const live = process.live_at(LiveMoment::out_of_memory);
  if (!live || live->failed.empty()) return;
  const FailedAllocation& failed = live->failed.front();
  uint64_t from_cuda = 0;
  for (const LiveAllocation& each : live->allocations) {
    if (counts(each, false)) from_cuda += each.bytes;
  }
  const CodePlace place = memory_place(process.stacks, failed.stack);
  std::string given_out, most;
  for (const AllocatorTotals& each : live->allocators) {
    given_out += fmt::format("; GPU {}: {} of {} reserved were given out", each.device,
                             format_bytes(each.allocated), format_bytes(each.reserved));
  }
  const std::vector<OwnerRow> owners = live_owners(process, *live);
  for (size_t i = 0; i < std::min(owners.size(), kMostNamed); ++i) {
    most += fmt::format("{}{} ({})", i == 0 ? "; most by " : ", ", owners[i].name,
                        format_bytes(static_cast<uint64_t>(owners[i].bytes)));
  }
  if (place.text.empty()) most += ". GPUPROF_STACKS=alloc names the lines of code";
  add_finding<FindingKind::out_of_memory>(
      out, static_cast<double>(failed.bytes),
      process.header.rank() >= 0 ? fmt::format("rank {}", process.header.rank())
                                 : fmt::format("pid {}", process.header.pid()),
      step_text(process, failed.time), format_bytes(failed.bytes),
      failed.api == StringIndex::empty ? "the framework's allocator" : trace.text(failed.api),
      place.text.empty() ? "" : ", ", place.text, format_bytes(from_cuda), given_out, most);
}

}  // namespace gpuprof::analysis
