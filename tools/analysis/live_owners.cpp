// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/live_owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/trace/process_key.h"
#include "formats/views/memory_curves.h"
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

std::string who(const Process& process) {
  return process.header.rank() >= 0 ? fmt::format("rank {}", process.header.rank())
                                    : fmt::format("pid {}", process.header.pid());
}

bool counts(const LiveAllocation& each, bool blocks) {
  return each.is_block() == blocks && each.device != Shape::kAbsent;
}

bool has_blocks(const LiveMemory& live) {
  return std::any_of(live.allocations.begin(), live.allocations.end(),
                     [](const LiveAllocation& each) { return counts(each, true); });
}

bool was_given(const Trace& trace, const LiveAllocation& each, const Refused& refused) {
  return each.time >= refused.time && each.bytes >= refused.bytes &&
         each.is_block() == refused.block &&
         names_host_memory(trace.text(each.api)) == refused.host;
}

bool was_given(const Trace& trace, const Process& process, uint32_t event, const Refused& refused) {
  const Shape& shape = trace.shapes[process.events.shape_of(event)];
  const bool given = refused.block ? shape.kind == Kind::tensor && shape.value == 0 &&
                                         is_gpu_memory(shape.device_type)
                                   : shape.kind == Kind::alloc && shape.result == 0 &&
                                         names_host_memory(trace.text(shape.name)) == refused.host;
  return given && process.events[event].begin >= refused.time &&
         process.extra(process.events[event]).bytes >= refused.bytes;
}

// A window each.
bool of_one_process(const Process& a, const Process& b) { return key_of(a) == key_of(b); }

// Steps by the clock go on while a program ends.
bool did_more_steps(const Trace& trace, const Process& process, int64_t time) {
  return std::any_of(trace.processes.begin(), trace.processes.end(), [&](const Process& each) {
    return of_one_process(each, process) && !each.step_source.starts_with("time") &&
           !each.steps.empty() && each.steps.back().begin >= time;
  });
}

}  // namespace

bool got_later(const Trace& trace, const Process& process, const Refused& refused) {
  for (const Process& each : trace.processes) {
    if (!of_one_process(each, process)) continue;
    for (const LiveMemory& live : each.live_memory) {
      for (const LiveAllocation& allocation : live.allocations) {
        if (was_given(trace, allocation, refused)) return true;
      }
    }
    for (uint32_t i = 0; i < each.events.size(); ++i) {
      if (was_given(trace, each, i, refused)) return true;
    }
  }
  return false;
}

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
  const std::string_view api =
      failed.api == StringIndex::empty ? "the framework's allocator" : trace.text(failed.api);
  const Refused refused{failed.time, failed.bytes, names_host_memory(trace.text(failed.api)),
                        failed.api == StringIndex::empty};
  const char* const went_on = got_later(trace, process, refused) ? "it asked again and got as much"
                              : did_more_steps(trace, process, failed.time) ? "steps followed"
                                                                            : nullptr;
  const auto bytes = static_cast<double>(failed.bytes);
  const std::string what = fmt::format(
      "{} more were asked for ({}{}{}), {} were allocated by CUDA", format_bytes(failed.bytes), api,
      place.text.empty() ? "" : ", ", place.text, format_bytes(from_cuda));
  const std::string when = step_text(process, failed.time);
  if (went_on) {
    add_finding<FindingKind::survived_out_of_memory>(out, bytes, who(process), when, went_on, what,
                                                     given_out, most);
  } else {
    add_finding<FindingKind::out_of_memory>(out, bytes, who(process), when, what, given_out, most);
  }
}

}  // namespace gpuprof::analysis
