// SPDX-License-Identifier: Apache-2.0
#include "formats/trace_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/trace/listing.h"

namespace gpuprof {
namespace {

using Id = std::pair<std::string, uint32_t>;  // host, pid

// The processes that have a file in common, with all their windows.
struct Unit {
  std::set<std::string> paths;
  std::set<Id> ids;
  std::set<uint64_t> steps;
  int64_t begin = INT64_MAX, end = INT64_MIN;
  bool whole = true;
};

struct Run {
  std::vector<const Unit*> units;

  bool whole() const {
    return std::all_of(units.begin(), units.end(), [](const Unit* unit) { return unit->whole; });
  }
  std::set<uint32_t> pids() const {
    std::set<uint32_t> out;
    for (const Unit* unit : units) {
      for (const Id& id : unit->ids) out.insert(id.second);
    }
    return out;
  }
};

bool is_outside(const Process& process) {
  return process.source == Source::kineto && !process.is_data_worker();
}

// As the trace has it, else as torch.profiler's handler names files: HOST_PID.TIME.pt.trace.json.
std::string host_of(const Process& process) {
  if (!process.header.host().empty()) return process.header.host();
  std::string_view name = process.path;
  name = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  const size_t mark = name.find(fmt::format("_{}.", process.header.pid()));
  return std::string(mark == name.npos ? std::string_view() : name.substr(0, mark));
}

void add(const Unit& from, Unit& to) {
  to.paths.insert(from.paths.begin(), from.paths.end());
  to.ids.insert(from.ids.begin(), from.ids.end());
  to.steps.insert(from.steps.begin(), from.steps.end());
  to.begin = std::min(to.begin, from.begin);
  to.end = std::max(to.end, from.end);
  to.whole &= from.whole;
}

// In order of time.
std::vector<Unit> units_of(const Trace& trace) {
  std::vector<Unit> units;
  std::map<std::string, size_t> of_path;
  std::map<Id, size_t> of_id;
  for (const Process& process : trace.processes) {
    if (!is_outside(process)) continue;
    Unit own;
    const Id id(host_of(process), process.header.pid());
    own.paths.insert(process.path);
    own.ids.insert(id);
    for (const Step& step : process.window_steps()) own.steps.insert(step.step);
    own.begin = process.window_begin, own.end = process.window_end;
    own.whole = process.completeness == Completeness::complete;
    const size_t at = of_path.try_emplace(process.path, units.size()).first->second;
    const size_t same = of_id.try_emplace(id, at).first->second;
    if (at == units.size() && same == at) {
      units.push_back(std::move(own));
      continue;
    }
    add(own, units[same]);
    of_path[process.path] = same;
    if (at == same || at == units.size()) continue;
    add(units[at], units[same]);  // two that had no file in common before
    for (const std::string& path : units[at].paths) of_path[path] = same;
    for (const Id& other : units[at].ids) of_id[other] = same;
    units[at] = Unit();
  }
  std::erase_if(units, [](const Unit& unit) { return unit.paths.empty(); });
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit& a, const Unit& b) { return a.begin < b.begin; });
  return units;
}

bool shares_steps(const Unit& a, const Unit& b) {
  return std::any_of(a.steps.begin(), a.steps.end(),
                     [&](uint64_t step) { return b.steps.contains(step); });
}

bool begins_another(const Run& run, const Unit& unit) {
  const bool after = std::all_of(run.units.begin(), run.units.end(), [&](const Unit* other) {
    return unit.begin >= other->end && unit.ids.begin()->first == other->ids.begin()->first;
  });
  return after && std::any_of(run.units.begin(), run.units.end(),
                              [&](const Unit* other) { return shares_steps(unit, *other); });
}

// All files but those of other runs.
void keep_only(const Run& chosen, const std::vector<Run>& runs, Trace& trace) {
  std::set<std::string> dropped;
  for (const Run& run : runs) {
    if (&run == &chosen) continue;
    for (const Unit* unit : run.units) dropped.insert(unit->paths.begin(), unit->paths.end());
  }
  std::erase_if(trace.processes,
                [&](const Process& process) { return dropped.contains(process.path); });
}

}  // namespace

void choose_traces(Trace& trace, bool choose) {
  const auto has_rank = [](const Process& process) {
    return is_outside(process) && process.header.rank() >= 0;
  };
  if (std::any_of(trace.processes.begin(), trace.processes.end(), has_rank)) return;
  const std::vector<Unit> units = units_of(trace);
  std::vector<Run> runs;
  for (const Unit& unit : units) {
    if (runs.empty() || begins_another(runs.back(), unit)) runs.emplace_back();
    runs.back().units.push_back(&unit);
  }
  if (runs.size() < 2) return;
  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(number_ranges(run.pids()));
  std::string note = fmt::format(
      "these traces are of {} runs of the same steps, one after the other, by processes without a "
      "rank (pid {})",
      runs.size(), names_of_some(names, 4));
  if (choose) {
    // Of equals the last.
    auto chosen =
        std::find_if(runs.rbegin(), runs.rend(), [](const Run& run) { return run.whole(); });
    const bool whole = chosen != runs.rend();
    if (!whole) chosen = runs.rbegin();
    trace.notes.push_back(fmt::format("{}; taking the newest{}, pid {}; name files to take others",
                                      note, whole ? "" : ", as none is whole",
                                      number_ranges(chosen->pids())));
    keep_only(*chosen, runs, trace);
  } else {
    trace.notes.push_back(note + "; taken as one run; compare runs with gpuprof diff");
  }
}

}  // namespace gpuprof
