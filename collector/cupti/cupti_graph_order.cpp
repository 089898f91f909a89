// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_graph_order.h"

#include <algorithm>

namespace gpuprof {

template <typename Row>
Row* GraphOrder::Table<Row>::find_or_add(uint64_t key) {
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
void GraphOrder::Table<Row>::clear() {
  rows.clear();
  slots.clear();
}

void GraphOrder::clear() {
  launches_.clear();
  waits_.clear();
  graphs_.clear();
  nodes_.clear();
  lost_ = 0;
}

void GraphOrder::add_launch(uint32_t graph, uint32_t correlation, uint64_t begin, bool recorded) {
  Graph* const found = graphs_.find_or_add(graph);
  if (!found || !launches_.push_back({begin, 0, correlation, 0})) return lose_count(begin);
  const auto number = static_cast<uint32_t>(launches_.size());
  if (found->first == 0) {
    found->first = number;
    found->sure = true;
  } else {
    launches_[found->last - 1].next = number;
  }
  found->last = number;
  if (!recorded) found->sure = false;
}

void GraphOrder::add_wait(uint64_t begin, uint64_t end) {
  if (!waits_.empty() && waits_[waits_.size() - 1].end > end) return;  // another thread was faster
  (void)waits_.push_back({begin, end});
}

void GraphOrder::lose_count(uint64_t now) {
  lost_ = now;
  for (Graph& graph : graphs_.rows) graph.sure = false;
}

void GraphOrder::exclude(uint32_t graph) {
  if (Graph* const found = graphs_.find_or_add(graph)) found->excluded = true;
}

const GraphOrder::Wait* GraphOrder::last_wait_before(uint64_t time) const {
  const Wait* const after =
      std::upper_bound(waits_.begin(), waits_.end(), time,
                       [](uint64_t limit, const Wait& wait) { return limit < wait.end; });
  return after == waits_.begin() ? nullptr : after - 1;
}

// The launches of a graph follow each other: its records lie after the launch, after those of the
// launch before, before those of the launch after, and not after a wait for it.
bool GraphOrder::fits(const Launch& launch, const Graph& graph, uint64_t start) const {
  if (start < launch.begin || start < graph.since) return false;
  const Wait* const wait = last_wait_before(start);
  if (wait && wait->begin > launch.begin) return false;
  if (launch.next == 0) return true;
  const Launch& after = launches_[launch.next - 1];
  return after.first_start == 0 || start <= after.first_start;
}

// From the last wait before `start` on: which launch is the first after it.
bool GraphOrder::count_anew(Graph& graph, uint64_t start) {
  const Wait* const wait = last_wait_before(start);
  if (!wait || wait->begin < lost_) return false;
  uint32_t launch = graph.base ? graph.base : graph.first;
  while (launch != 0 && launches_[launch - 1].begin <= wait->begin) {
    launch = launches_[launch - 1].next;
  }
  if (launch == 0) return false;
  const uint64_t begin = launches_[launch - 1].begin;
  if (begin < wait->end || begin > start) return false;
  graph.base = launch;
  graph.since = wait->end;
  graph.sure = true;
  ++graph.count;
  return true;
}

uint32_t GraphOrder::next_launch(const Graph& graph, const Node& node) const {
  if (node.launch != 0 && node.count == graph.count) return launches_[node.launch - 1].next;
  return graph.base ? graph.base : graph.first;
}

uint32_t GraphOrder::launch_of(uint32_t graph_id, uint64_t node_id, uint64_t start) {
  Graph* const graph = graphs_.find_or_add(graph_id);
  Node* const node = nodes_.find_or_add(node_id);
  if (!graph || !node || graph->excluded || graph->first == 0) return 0;
  if (!graph->sure && !count_anew(*graph, start)) return 0;
  const auto right = [&](uint32_t number) {
    return number != 0 && start >= node->previous && fits(launches_[number - 1], *graph, start);
  };
  uint32_t number = next_launch(*graph, *node);
  if (!right(number)) {
    graph->sure = false;
    if (start < graph->since || !count_anew(*graph, start)) return 0;
    number = next_launch(*graph, *node);
    if (!right(number)) {
      graph->sure = false;
      return 0;
    }
  }
  Launch& launch = launches_[number - 1];
  if (launch.first_start == 0 || start < launch.first_start) launch.first_start = start;
  node->previous = start;
  node->count = graph->count;
  node->launch = number;
  return launch.correlation;
}

}  // namespace gpuprof
