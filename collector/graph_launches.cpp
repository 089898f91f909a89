// SPDX-License-Identifier: Apache-2.0
#include "collector/graph_launches.h"

namespace gpuprof {

template <typename Row>
size_t GraphLaunches::Table<Row>::find_or_add(uint64_t key) {
  const auto place = [this](uint64_t wanted) -> uint32_t& {
    size_t at = (wanted * 0x9e3779b97f4a7c15ull >> 32) & (slots.size() - 1);
    while (slots[at] && rows[slots[at] - 1].key != wanted) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  };
  if (slots.size() < 2 * (rows.size() + 1)) {
    const size_t size = slots.empty() ? 1024 : 2 * slots.size();
    slots.clear();
    if (!slots.resize(size)) return rows.size();
    for (size_t i = 0; i < rows.size(); ++i) place(rows[i].key) = static_cast<uint32_t>(i + 1);
  }
  uint32_t& slot = place(key);
  if (slot == 0) {
    Row row{};
    row.key = key;
    if (!rows.push_back(row)) return rows.size();
    slot = static_cast<uint32_t>(rows.size());
  }
  return slot - 1;
}

void GraphLaunches::clear() {
  launches_.rows.clear();
  launches_.slots.clear();
  execs_.rows.clear();
  execs_.slots.clear();
}

void GraphLaunches::count(size_t launch, bool first) {
  const Launch& row = launches_.rows[launch];
  Exec& exec = execs_.rows[row.exec - 1];
  exec.with_some += first;
  if (row.records <= exec.most) return;
  exec.most = row.records;
  exec.best = static_cast<uint32_t>(launch);
}

void GraphLaunches::add(uint32_t correlation, uint64_t exec, uint32_t nodes) {
  const size_t launch = launches_.find_or_add(correlation);
  const size_t index = execs_.find_or_add(exec);
  if (launch == launches_.rows.size() || index == execs_.rows.size()) return;
  Exec& of = execs_.rows[index];
  // A handle may be used again once its graph is destroyed.
  if (of.nodes != nodes) of = Exec{exec, nodes, 0, 0, 0};
  Launch& row = launches_.rows[launch];
  row.exec = static_cast<uint32_t>(index + 1);
  if (row.records) count(launch, true);
}

void GraphLaunches::add_record(uint32_t correlation) {
  const size_t launch = launches_.find_or_add(correlation);
  if (launch == launches_.rows.size()) return;
  Launch& row = launches_.rows[launch];
  ++row.records;
  if (row.exec) count(launch, row.records == 1);
}

uint64_t GraphLaunches::incomplete(bool known_only) const {
  uint64_t result = 0;
  for (size_t i = 0; i < launches_.rows.size(); ++i) {
    const Launch& row = launches_.rows[i];
    if (row.exec == 0 || row.records == 0) continue;
    const Exec& exec = execs_.rows[row.exec - 1];
    if (known_only && exec.nodes == 0) continue;
    const bool alone = exec.best == i && exec.with_some == 1;
    result += row.records < (alone ? exec.nodes : exec.most);
  }
  return result;
}

}  // namespace gpuprof
