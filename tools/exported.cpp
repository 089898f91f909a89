// SPDX-License-Identifier: Apache-2.0
#include "tools/exported.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tools/console.h"
#include "tools/hash.h"
#include "tools/inputs.h"

namespace gpuprof {
namespace {

std::span<const analysis::CollectiveCall> calls_of(const analysis::ReportParts& parts,
                                                   uint32_t timeline) {
  const auto of = [](const analysis::CollectiveCall& call) { return call.timeline; };
  const auto begin = std::ranges::lower_bound(parts.collectives, timeline, {}, of);
  return {begin, std::ranges::upper_bound(begin, parts.collectives.end(), timeline, {}, of)};
}

}  // namespace

std::vector<Exported> exported_of(const Trace& trace, const analysis::ReportParts& parts,
                                  const std::string& ranks) {
  if (!ranks.empty()) check_ranks(ranks, trace);
  std::unordered_map<const Process*, uint32_t> timelines;
  for (uint32_t i = 0; i < parts.timelines.size(); ++i) timelines[parts.timelines[i].process] = i;
  std::vector<Exported> out;
  for (const Process& process : trace.processes) {
    if (!ranks.empty() && !is_of_ranks(ranks, process)) continue;
    Exported& source = out.emplace_back();
    source.trace = &trace;
    source.process = &process;
    source.id = process_id(process);
    const auto at = timelines.find(&process);
    if (at == timelines.end()) continue;
    source.timeline = &parts.timelines[at->second];
    source.steps = &parts.steps[at->second];
    source.collectives = calls_of(parts, at->second);
  }
  return out;
}

int64_t process_id(const Process& process) {
  const dump::Header& h = process.header;
  // Of a dump not the rank, which may be known from the dumps of others alone.
  std::string key =
      fmt::format("{}\n{}\n{}\n{}", h.host(), h.pid(), h.os_start_time(), h.process_start_ticks());
  if (process.source == Source::dump) {
    key += fmt::format("\n{}\n{}", h.window(), h.window_begin_ticks());
  } else {
    // A trace of another tool says less. The number of its window is by what else was read.
    key += fmt::format("\n{}\n{}\n{}", h.rank(), process.window_begin, process.events.size());
  }
  return static_cast<int64_t>(fnv1a(key) >> 1);
}

}  // namespace gpuprof
