// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/graph_launches.h"

#include <algorithm>

namespace gpuprof {
namespace {

// Correlation ids wrap at 32 bits.
bool later(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

}  // namespace

template <typename Row>
Row* GraphLaunches::Table<Row>::find_or_add(uint64_t key) {
  const auto place = [this](uint64_t wanted) -> uint32_t& {
    size_t at = (wanted * 0x9e3779b97f4a7c15ull >> 32) & (slots.size() - 1);
    while (slots[at] && rows[slots[at] - 1].key != wanted) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  };
  if (slots.size() < 2 * (rows.size() + 1)) {
    size_t size = 1024;
    while (size < 4 * (rows.size() + 1)) size *= 2;
    slots.clear();
    if (!slots.resize(size)) return nullptr;
    for (size_t i = 0; i < rows.size(); ++i) place(rows[i].key) = static_cast<uint32_t>(i + 1);
  }
  uint32_t& slot = place(key);
  if (slot == 0) {
    Row row{};
    row.key = key;
    if (!rows.push_back(row)) return nullptr;
    slot = static_cast<uint32_t>(rows.size());
  }
  return &rows[slot - 1];
}

template <typename Row>
void GraphLaunches::Table<Row>::clear() {
  rows.clear();
  slots.clear();
}

void GraphLaunches::clear() {
  launches_.clear();
  graphs_.clear();
  execs_.clear();
  any_work_ = false;
}

void GraphLaunches::note_work(uint32_t correlation) {
  if (!any_work_ || later(correlation, newest_work_)) newest_work_ = correlation;
  any_work_ = true;
}

bool GraphLaunches::passed(const Launch& launch) const {
  return any_work_ && later(newest_work_, static_cast<uint32_t>(launch.key));
}

void GraphLaunches::add(uint32_t correlation, uint64_t exec, uint32_t nodes, bool surely) {
  Launch* const launch = launches_.find_or_add(correlation);
  if (!launch) return;
  launch->exec = exec;
  launch->nodes = nodes;
  launch->told = true;
  launch->surely = surely;
}

void GraphLaunches::add_record(uint32_t correlation, uint32_t graph) {
  Launch* const launch = launches_.find_or_add(correlation);
  if (!launch) return;
  launch->graph = graph;
  ++launch->records;
}

// Anew each time: records come in any order.
void GraphLaunches::compare_launches() {
  graphs_.clear();
  execs_.clear();
  for (const Launch& launch : launches_.rows) {
    const auto correlation = static_cast<uint32_t>(launch.key);
    if (Exec* const exec = launch.told ? execs_.find_or_add(launch.exec) : nullptr) {
      exec->with_records += launch.records != 0;
      exec->passed += launch.records == 0 && passed(launch);
    }
    Graph* const graph =
        launch.records && launch.graph ? graphs_.find_or_add(launch.graph) : nullptr;
    if (!graph) continue;
    if (!graph->any || later(correlation, graph->newest)) graph->newest = correlation;
    graph->any = true;
  }
  for (const Launch& launch : launches_.rows) {
    if (!launch.told || !launch.records || !launch.graph) continue;
    Graph* const graph = graphs_.find_or_add(launch.graph);
    if (!graph || graph->newest == launch.key) continue;
    graph->least = graph->least ? std::min(graph->least, launch.records) : launch.records;
  }
}

GraphLaunches::Missing GraphLaunches::missing() {
  compare_launches();
  Missing out{};
  for (const Launch& launch : launches_.rows) {
    if (!launch.told) continue;
    if (launch.records == 0) {
      const Exec* const exec = launch.surely ? nullptr : execs_.find_or_add(launch.exec);
      if (!exec) continue;
      const bool had_some = exec->with_records != 0;
      out.awaited += had_some || exec->passed == 0;
      (had_some ? out.unfinished : out.untimed) += 1;
      continue;
    }
    const Graph* const graph = launch.graph ? graphs_.find_or_add(launch.graph) : nullptr;
    if (!graph || graph->newest != launch.key) continue;
    const bool fewer = launch.records < graph->least;
    out.unfinished += fewer;
    // Of the only one the nodes tell, but some may have no record: a copy of nothing.
    out.awaited += fewer || (graph->least == 0 && launch.records < launch.nodes);
  }
  return out;
}

}  // namespace gpuprof
