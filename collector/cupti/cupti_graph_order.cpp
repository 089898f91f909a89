// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_graph_order.h"

#include <algorithm>

namespace gpuprof {

template <typename Row>
uint32_t& GraphOrder::Table<Row>::slot_of(uint64_t key) {
  size_t at = (key * 0x9e3779b97f4a7c15ull >> 32) & (slots.size() - 1);
  while (slots[at] && rows[slots[at] - 1].key != key) at = (at + 1) & (slots.size() - 1);
  return slots[at];
}

template <typename Row>
Row* GraphOrder::Table<Row>::find_or_add(uint64_t key) {
  if (slots.size() < 2 * (rows.size() + 1)) {
    size_t size = 1024;
    while (size < 4 * (rows.size() + 1)) size *= 2;
    slots.clear();
    if (!slots.resize(size)) return nullptr;
    for (size_t i = 0; i < rows.size(); ++i) slot_of(rows[i].key) = static_cast<uint32_t>(i + 1);
  }
  uint32_t& slot = slot_of(key);
  if (slot == 0) {
    Row row{};
    row.key = key;
    if (!rows.push_back(row)) return nullptr;
    slot = static_cast<uint32_t>(rows.size());
  }
  return &rows[slot - 1];
}

template <typename Row>
const Row* GraphOrder::Table<Row>::find(uint64_t key) const {
  if (slots.empty()) return nullptr;
  const uint32_t slot = const_cast<Table*>(this)->slot_of(key);
  return slot ? &rows[slot - 1] : nullptr;
}

template <typename Row>
void GraphOrder::Table<Row>::clear() {
  rows.clear();
  slots.clear();
}

void GraphOrder::clear() {
  launches_.clear();
  graphs_.clear();
  nodes_.clear();
  streams_.clear();
  contexts_.clear();
  events_.clear();
  recording_ = lost_ = 0;
  waited_ = false;
}

void GraphOrder::begin_recording(uint64_t now) {
  recording_ = now;
  lose_count(now);
}

// Nothing of its graph that was launched before it is left: a launch that nobody saw would have
// been over when the host had waited.
bool GraphOrder::comes_first(const Graph& graph, uint64_t context, uint64_t begin) {
  if (graph.first != 0 || recording_ == 0) return false;
  const Context* const found = contexts_.find(context);
  return found && found->waited != 0 && found->waited < begin;
}

uint32_t GraphOrder::add_launch(uint32_t graph, Place place, uint32_t correlation, uint64_t begin) {
  Graph* const found = graphs_.find_or_add(graph);
  if (!found || !launches_.push_back({begin, 0, 0, 0, 0, correlation, 0, 0})) {
    lose_count(begin);
    return 0;
  }
  const auto number = static_cast<uint32_t>(launches_.size());
  if (found->first == 0) {
    found->sure = comes_first(*found, place.context, begin);
    found->first = number;
  } else {
    Launch& before = launches_[found->last - 1];
    before.next = number;
    const bool recorded = recording_ != 0 && begin > recording_;
    if (recorded && before.over < begin) launches_[number - 1].after = before.over;
    if (launches_[number - 1].after != 0) found->newest_fresh = number;
  }
  found->last = number;
  add_to_stream(place, number);
  return number;
}

void GraphOrder::add_to_stream(Place place, uint32_t number) {
  if (place.context == 0 || place.stream == 0) return;
  Stream* const stream = streams_.find_or_add(place.stream);
  if (!stream) return;
  stream->context = place.context;
  if (stream->last != 0) {
    launches_[stream->last - 1].next_in_stream = number;
  } else {
    stream->first = number;
  }
  stream->last = number;
}

void GraphOrder::end_launch(uint32_t number, uint32_t correlation, uint64_t now, bool succeeded) {
  if (number == 0 || number > launches_.size()) return;
  Launch& launch = launches_[number - 1];
  if (launch.correlation != correlation || launch.end != 0) return;  // of before clear()
  launch.end = now;
  if (!succeeded) lose_count(now);
}

void GraphOrder::finish(Stream& stream, uint64_t begin, uint64_t end) {
  while (stream.first != 0) {
    Launch& launch = launches_[stream.first - 1];
    if (launch.end == 0 || launch.end > begin) return;
    launch.over = end;
    waited_ |= recording_ != 0 && begin >= recording_;
    stream.first = launch.next_in_stream;
  }
  stream.last = 0;
}

void GraphOrder::add_context_wait(uint64_t context, uint64_t begin, uint64_t end) {
  if (context == 0) return;
  for (Stream& stream : streams_.rows) {
    if (stream.context == context) finish(stream, begin, end);
  }
  if (recording_ == 0 || begin < recording_) return;
  waited_ = true;
  Context* const found = contexts_.find_or_add(context);
  if (found && found->waited == 0) found->waited = end;
}

void GraphOrder::add_stream_wait(uint64_t stream, uint64_t begin, uint64_t end) {
  if (stream == 0 || !streams_.find(stream)) return;
  finish(*streams_.find_or_add(stream), begin, end);
}

void GraphOrder::add_event(uint64_t event, EventPlace place) {
  if (Event* const found = events_.find_or_add(event)) found->place = place;
}

GraphOrder::EventPlace GraphOrder::event(uint64_t event) const {
  const Event* const found = events_.find(event);
  return found ? found->place : EventPlace{};
}

void GraphOrder::end_stream(uint64_t stream) {
  if (streams_.find(stream)) {
    Stream& found = *streams_.find_or_add(stream);
    found.first = found.last = 0;
  }
}

void GraphOrder::lose_count(uint64_t now) {
  lost_ = now;
  for (Graph& graph : graphs_.rows) graph.sure = false;
}

bool GraphOrder::counts_all() const {
  for (const Graph& graph : graphs_.rows) {
    if (graph.excluded || graph.sure || graph.last == 0) continue;
    if (launches_[graph.last - 1].over != 0) continue;
    if (graph.newest_fresh == 0 || launches_[graph.newest_fresh - 1].begin <= lost_) return false;
  }
  return true;
}

void GraphOrder::exclude(uint32_t graph) {
  if (Graph* const found = graphs_.find_or_add(graph)) found->excluded = true;
}

// The launches of a graph follow each other: its records lie after the launch, before those of the
// launch after, and not after the host knew that it was over.
bool GraphOrder::fits(const Launch& launch, const Graph& graph, uint64_t start) const {
  if (start < launch.begin || start < graph.since) return false;
  if (launch.over != 0 && start > launch.over) return false;
  if (launch.next == 0) return true;
  const Launch& after = launches_[launch.next - 1];
  return after.first_start == 0 || start <= after.first_start;
}

// From the last launch before `start` on of which it is known that those before it were over.
bool GraphOrder::count_anew(Graph& graph, uint64_t start) {
  for (uint32_t at = graph.seen ? graph.seen : graph.first;
       at != 0 && launches_[at - 1].begin <= start; at = launches_[at - 1].next) {
    graph.seen = at;
    if (launches_[at - 1].after != 0) graph.fresh = at;
  }
  if (graph.fresh <= graph.base) return false;  // counted from there already, and wrongly
  const Launch& launch = launches_[graph.fresh - 1];
  if (launch.begin > start || launch.begin <= lost_ || launch.first_start != 0) return false;
  graph.base = graph.fresh;
  graph.since = launch.after;
  graph.sure = true;
  ++graph.count;
  return true;
}

uint32_t GraphOrder::next_launch(const Graph& graph, const Node& node) const {
  if (node.launch != 0 && node.count == graph.count) return launches_[node.launch - 1].next;
  return graph.base ? graph.base : graph.first;
}

bool GraphOrder::is_right(uint32_t number, const Graph& graph, const Node& node,
                          uint64_t start) const {
  return number != 0 && start >= node.previous && fits(launches_[number - 1], graph, start);
}

uint32_t GraphOrder::launch_of(uint32_t graph_id, uint64_t node_id, uint64_t start) {
  Graph* const graph = graphs_.find_or_add(graph_id);
  Node* const node = nodes_.find_or_add(node_id);
  if (!graph || !node || graph->excluded || graph->first == 0) return 0;
  if (start < graph->since) return 0;  // of before the count
  uint32_t number = graph->sure ? next_launch(*graph, *node) : 0;
  if (!is_right(number, *graph, *node, start)) {
    graph->sure = false;
    if (!count_anew(*graph, start)) return 0;
    number = next_launch(*graph, *node);
    if (!is_right(number, *graph, *node, start)) {
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
