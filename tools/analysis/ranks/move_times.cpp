// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/move_times.h"

#include <utility>

namespace gpuprof::analysis {
namespace {

EventTable moved(const EventTable& from, const ClockLine& clock, size_t shape_count) {
  EventTable to(from.size(), shape_count);
  std::vector<EventTable::Writer> writers;
  writers.emplace_back(to, 0);
  for (Event event : from) {
    event.begin = clock.corrected(event.begin);
    event.end = std::max(event.begin, clock.corrected(event.end));
    writers[0].add(event, true);
  }
  to.finish(writers);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from.partner_of(i) != EventIndex::none) to.set_partner(i, from.partner_of(i));
    const EventIndex sibling = from.next_sibling_of(i);
    if (sibling != EventIndex::none) to.set_next_sibling(i, sibling);
  }
  return to;
}

}  // namespace

void move_times(Process& process, const ClockLine& clock, size_t shape_count) {
  const auto move = [&](int64_t& time) { time = clock.corrected(time); };
  const auto move_points = [&](auto& all) {
    for (auto& series : all) {
      for (auto& point : series.points) move(point.time);
    }
  };
  process.events = moved(process.events, clock, shape_count);
  process.realtime_offset -= std::llround(clock.at(process.window_begin));
  move(process.window_begin);
  move(process.window_end);
  for (Step& step : process.steps) move(step.begin), move(step.end);
  for (RecordingBudget::LeftOut& each : process.budget.left_out) move(each.since);
  if (process.budget.until) move(process.budget.since), move(process.budget.until);
  for (HostSample& sample : process.samples) move(sample.time);
  for (HeapSample& sample : process.heap) move(sample.time);
  move_points(process.counters);
  move_points(process.processor_waits);
  move_points(process.named_counters);
  for (Worker& worker : process.workers) {
    move(worker.born);
    for (Worker::Sample& sample : worker.samples) move(sample.time);
  }
  for (LiveMemory& memory : process.live_memory) {
    move(memory.time);
    for (LiveAllocation& each : memory.allocations) move(each.time);
    for (FailedAllocation& each : memory.failed) move(each.time);
    for (AllocatorTotals& each : memory.allocators) move(each.peak_time);
  }
  for (auto& [id, node] : process.graph_nodes) move(node.captured);
  for (ReplayedGraph& graph : process.replayed_graphs) {
    move(graph.since);
    for (ReplayedCall& call : graph.calls) move(call.node.captured);
  }
}

}  // namespace gpuprof::analysis
