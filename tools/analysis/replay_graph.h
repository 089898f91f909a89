// SPDX-License-Identifier: Apache-2.0
// The dependencies of what was recorded: the order of calls on a thread, from a launch to its work,
// the order of work on a stream, event waits, host synchronisation, and collectives, which begin
// when the last rank has come. Where a dependency was not recorded (inside a graph, say), it is
// taken from the times: work that began as other work ended, and had no other reason to wait.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/ranks.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

enum class NodeKind : uint8_t { call_begin, call_end, work_begin, work_end, join };

struct ReplayNode {
  NodeKind kind;
  uint16_t rank;   // index of the timeline
  uint32_t index;  // of its call, of its work, or of the joint collective
  uint32_t first_edge, edge_count;
  int64_t recorded;  // ns since the earliest node
};

enum class EdgeKind : uint8_t {
  order,     // what must be over before
  duration,  // from the begin of a call to its end
  wait,      // a call that ends when work has ended
};

// The node it belongs to is not before the time of `from` plus `weight`.
struct ReplayEdge {
  uint32_t from;
  EdgeKind kind;
  int64_t weight;  // ns
};

// A thread's time before a call, since the call (of this thread, or of one it waited for) before
// it.
struct QuietTime {
  int64_t loading;  // in its data loader
  int64_t brief;    // in stretches of at most kOwnWorkNs
  int64_t own;      // in longer ones
};

struct ReplayGraph {
  std::vector<ReplayNode> nodes;
  std::vector<ReplayEdge> edges;
  std::vector<uint32_t> order;                // every node after those it depends on
  std::vector<std::vector<QuietTime>> quiet;  // by rank and call
  std::vector<std::vector<int64_t>> delay;  // by rank and work: ns before it that nothing explains
  // By rank and step: the work_end nodes of what was issued in it.
  std::vector<std::vector<std::vector<uint32_t>>> step_ends;
};

ReplayGraph make_replay_graph(std::span<const Timeline> timelines, const RankComparison& ranks);

}  // namespace gpuprof::analysis
