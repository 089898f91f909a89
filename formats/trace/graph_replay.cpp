// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/graph_replay.h"

#include <algorithm>
#include <compare>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace gpuprof {
namespace {

// Work of a node, as a launch made it.
struct Work {
  uint32_t launch;
  uint64_t node;
  uint32_t event;
  auto operator<=>(const Work&) const = default;
};

class Replay {
 public:
  Replay(const Trace& trace, Process& process) : trace_(trace), process_(process) {}

  void run() {
    collect();
    for (size_t at = 0; at < works_.size();) {
      size_t end = at;
      while (end < works_.size() && works_[end].launch == works_[at].launch) ++end;
      tell(std::span(works_).subspan(at, end - at));
      at = end;
    }
    for (const auto& [node, call] : told_) {
      if (call) process_.graph_nodes[node] = call->node;
    }
  }

 private:
  const Shape& shape(uint32_t event) const {
    return trace_.shapes[process_.events.shape_of(event)];
  }

  void collect() {
    for (const Lane& lane : process_.lanes) {
      if (lane.type == LaneType::thread) continue;
      for (uint32_t i = lane.first_event; i < lane.first_event + lane.event_count; ++i) {
        if (!is_stream_work(shape(i).kind) || shape(i).graph == 0) continue;
        const Event event = process_.events[i];
        const uint64_t node = process_.extra(event).value;
        if (event.partner == EventIndex::none || node == 0) continue;
        if (process_.graph_nodes.contains(node)) continue;
        works_.push_back({number(event.partner), node, i});
      }
    }
    std::sort(works_.begin(), works_.end());
  }

  // What the launch replays; null: not known.
  const ReplayedGraph* graph_of(uint32_t launch) const {
    const ReplayedGraph* found = nullptr;
    for (const ReplayedGraph& graph : process_.replayed_graphs) {
      const bool before = graph.since <= process_.events[launch].begin;
      if (graph.exec == shape(launch).function && before) found = &graph;
    }
    return found;
  }

  // What a node and a call are compared by.
  using Look = std::tuple<Kind, StringIndex, uint64_t, uint32_t, uint32_t, uint32_t, uint32_t,
                          uint32_t, uint32_t>;
  static Look look(const ReplayedCall& c) {
    return {c.kind,   c.kernel,  c.bytes,   c.grid.x, c.grid.y,
            c.grid.z, c.block.x, c.block.y, c.block.z};
  }
  Look look(const Work& work) const {
    const Shape& s = shape(work.event);
    if (s.kind != Kind::gpu_kernel) {
      const uint64_t bytes = process_.extra(process_.events[work.event]).bytes;
      return {s.kind, StringIndex::empty, bytes, 0, 0, 0, 0, 0, 0};
    }
    return {s.kind, s.name, 0, s.grid.x, s.grid.y, s.grid.z, s.block.x, s.block.y, s.block.z};
  }
  static bool agree(Look node, Look call) {
    if (std::get<StringIndex>(call) == StringIndex::empty) std::get<StringIndex>(node) = {};
    return node == call;
  }

  void tell(std::span<const Work> works) {
    const ReplayedGraph* const graph = graph_of(works.front().launch);
    if (!graph || !graph->complete || works.size() != graph->calls.size()) return;
    if (!done_.insert({graph, false}).first->second) {
      done_[graph] = in_order(works, *graph);
      if (!done_[graph]) tell_apart(works, *graph);
    }
  }

  // All nodes agree with the calls in order; of those that look alike none ran before one that was
  // captured before it.
  bool in_order(std::span<const Work> works, const ReplayedGraph& graph) {
    std::map<Look, int64_t> newest;
    for (size_t i = 0; i < works.size(); ++i) {
      const Look node = look(works[i]);
      if (!agree(node, look(graph.calls[i]))) return false;
      const int64_t begin = process_.events[works[i].event].begin;
      const auto [at, first] = newest.insert({node, begin});
      if (!first && begin < at->second) return false;
      at->second = begin;
    }
    for (size_t i = 0; i < works.size(); ++i) put(works[i].node, graph.calls[i]);
    return true;
  }

  void tell_apart(std::span<const Work> works, const ReplayedGraph& graph) {
    std::map<Look, int> nodes, calls;
    for (const Work& work : works) ++nodes[look(work)];
    for (const ReplayedCall& call : graph.calls) ++calls[look(call)];
    for (const ReplayedCall& call : graph.calls) {
      if (std::get<StringIndex>(look(call)) == StringIndex::empty &&
          call.kind == Kind::gpu_kernel) {
        return;  // it may be any
      }
    }
    for (const Work& work : works) {
      const Look wanted = look(work);
      if (nodes[wanted] != 1 || calls[wanted] != 1) continue;
      for (const ReplayedCall& call : graph.calls) {
        if (look(call) == wanted) put(work.node, call);
      }
    }
  }

  static bool same(const ReplayedCall& a, const ReplayedCall& b) {
    return a.node.captured == b.node.captured && a.node.thread == b.node.thread;
  }

  void put(uint64_t node, const ReplayedCall& call) {
    if (!call.known) return;
    const auto [at, first] = told_.insert({node, &call});
    if (!first && at->second && !same(*at->second, call)) at->second = nullptr;
  }

  const Trace& trace_;
  Process& process_;
  std::vector<Work> works_;
  std::unordered_map<const ReplayedGraph*, bool> done_;     // all its nodes are told
  std::unordered_map<uint64_t, const ReplayedCall*> told_;  // null: launches differ
};

}  // namespace

void name_replayed_nodes(const Trace& trace, Process& process) {
  if (!process.replayed_graphs.empty()) Replay(trace, process).run();
}

}  // namespace gpuprof
