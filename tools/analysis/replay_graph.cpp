// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay_graph.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "tools/analysis/anatomy.h"

namespace gpuprof::analysis {
namespace {

constexpr int64_t kNearNs = 20'000;        // "as other work ended"
constexpr int64_t kUnexplainedNs = 5'000;  // a delay worth looking for a reason
constexpr int64_t kCheapCallNs = 2'000;    // what a synchronisation costs that need not wait
constexpr int64_t kLongIssueNs = 50'000;   // a launch that takes this long waits for a full queue
constexpr int64_t kLongFreeNs = 10'000;
constexpr int64_t kOtherThreadNs = 200'000;  // quiet this long, a thread may wait for another

// Nodes of one rank. Calls are visited in order of begin over all threads.
class RankBuilder {
 public:
  RankBuilder(ReplayGraph& graph, const Timeline& timeline, uint16_t rank, int64_t origin,
              const std::vector<uint32_t>& joint_of, const std::vector<uint32_t>& join_nodes)
      : graph_(graph),
        timeline_(timeline),
        rank_(rank),
        origin_(origin),
        joint_of_(joint_of),
        join_nodes_(join_nodes),
        call_end_(timeline.calls.size(), kNone),
        work_end_(timeline.works.size(), kNone),
        last_on_stream_(timeline.streams.size(), kNone),
        awaited_by_stream_(timeline.streams.size()),
        last_call_(timeline.threads.size(), kNone) {
    graph_.quiet[rank].resize(timeline.calls.size());
    graph_.delay[rank].resize(timeline.works.size());
    graph_.step_ends[rank].resize(timeline.steps.size());
    for (uint32_t i = 0; i < timeline.streams.size(); ++i) {
      const StreamName& name = timeline.streams[i];
      for (const StreamLink& link : timeline.process->streams) {
        if (link.device == name.device && link.context == name.context &&
            link.stream == name.stream) {
          stream_of_.emplace(link.handle, i);
        }
      }
    }
  }

  void run() {
    std::vector<uint32_t> by_end(timeline_.works.size());
    for (uint32_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
    std::sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) {
      return timeline_.works[a].end < timeline_.works[b].end;
    });
    by_end_ = std::move(by_end);
    std::vector<uint32_t> calls(timeline_.calls.size());
    for (uint32_t i = 0; i < calls.size(); ++i) calls[i] = i;
    std::stable_sort(calls.begin(), calls.end(), [&](uint32_t a, uint32_t b) {
      return timeline_.calls[a].begin < timeline_.calls[b].begin;
    });
    uint32_t orphan = 0;
    for (const uint32_t call : calls) {
      orphans_before(orphan, timeline_.calls[call].begin);
      add_call(call);
    }
    orphans_before(orphan, INT64_MAX);
  }

 private:
  const Work& work(uint32_t i) const { return timeline_.works[i]; }
  const Call& call(uint32_t i) const { return timeline_.calls[i]; }

  uint32_t node(NodeKind kind, uint32_t index, int64_t time) {
    graph_.nodes.push_back(
        {kind, rank_, index, static_cast<uint32_t>(graph_.edges.size()), 0, time - origin_});
    return static_cast<uint32_t>(graph_.nodes.size()) - 1;
  }

  // Edges belong to the node that was made last.
  void edge(uint32_t from, EdgeKind kind, int64_t weight) {
    if (from == kNone) return;
    graph_.edges.push_back({from, kind, weight});
    ++graph_.nodes.back().edge_count;
  }

  void orphans_before(uint32_t& next, int64_t time) {
    for (; next < timeline_.works.size() && work(next).begin < time; ++next) {
      if (work(next).call == kNone) add_work(next, kNone);
    }
  }

  void add_call(uint32_t index) {
    const Call& c = call(index);
    const uint32_t begin = add_call_begin(index);
    note_event_calls(c);
    std::vector<uint32_t> own;
    for (uint32_t w = c.first_work; w != kNone; w = timeline_.next_work[w]) {
      add_work(w, begin);
      own.push_back(w);
    }
    const std::vector<uint32_t> awaited = awaited_by(c, own);
    int64_t last = INT64_MIN;
    for (const uint32_t w : awaited) last = std::max(last, work(w).end);
    const bool waited = last > c.begin;
    const int64_t length = c.end - c.begin;
    call_end_[index] = node(NodeKind::call_end, index, c.end);
    edge(begin, EdgeKind::duration, waited ? std::min(length, kCheapCallNs) : length);
    const int64_t tail = waited ? std::max<int64_t>(0, c.end - last) : 0;
    for (const uint32_t w : awaited) edge(work_end_[w], EdgeKind::wait, tail);
    last_call_[c.thread] = index;
  }

  // After the thread's call before; or, where the thread was quiet for long, after what another
  // thread did meanwhile (as PyTorch's main thread waits for the one that runs backward).
  uint32_t add_call_begin(uint32_t index) {
    const Call& c = call(index);
    const uint32_t own = last_call_[c.thread];
    const uint32_t other = latest_other_call(c);
    const int64_t since = own == kNone ? INT64_MIN : call(own).end;
    bool follows_other = other != kNone && own == kNone;
    if (other != kNone && own != kNone && c.begin - since > kOtherThreadNs) {
      const QuietTime alone = quiet_time(c, since);
      follows_other =
          call(other).end > since && (c.begin - call(other).end) * 2 < alone.brief + alone.own;
    }
    const uint32_t begin = node(NodeKind::call_begin, index, c.begin);
    if (follows_other) {
      edge(call_end_[other], EdgeKind::order, 0);
      if (own != kNone) edge(call_end_[own], EdgeKind::order, 0);
      graph_.quiet[rank_][index] = quiet_time(c, call(other).end);
    } else if (own != kNone) {
      edge(call_end_[own], EdgeKind::order, 0);
      graph_.quiet[rank_][index] = quiet_time(c, since);
    }
    return begin;
  }

  uint32_t latest_other_call(const Call& c) const {
    uint32_t found = kNone;
    for (uint32_t thread = 0; thread < last_call_.size(); ++thread) {
      const uint32_t last = last_call_[thread];
      if (thread == c.thread || last == kNone || call(last).end > c.begin) continue;
      if (found == kNone || call(last).end > call(found).end) found = last;
    }
    return found;
  }

  QuietTime quiet_time(const Call& c, int64_t since) const {
    QuietTime out{};
    const Intervals& loading = timeline_.threads[c.thread].data_loading;
    int64_t at = since;
    const auto stretch = [&](int64_t length) {
      (length > kOwnWorkNs ? out.own : out.brief) += std::max<int64_t>(0, length);
    };
    for (auto range = std::partition_point(loading.begin(), loading.end(),
                                           [&](const Interval& each) { return each.end <= since; });
         range != loading.end() && range->begin < c.begin; ++range) {
      stretch(range->begin - at);
      const int64_t end = std::min(range->end, c.begin);
      out.loading += end - std::max(range->begin, since);
      at = end;
    }
    stretch(c.begin - at);
    return out;
  }

  void note_event_calls(const Call& c) {
    const Event& event = timeline_.process->event(c.event);
    const Shape& shape = timeline_.trace->shape(event);
    if (shape.flags & kFlagCaptured) return;
    const uint64_t handle = timeline_.process->extra(event).address2;
    if (!handle) return;
    const std::string_view name = timeline_.trace->text(shape.name);
    const auto stream = stream_of_.find(shape.stream_handle);
    if (stream == stream_of_.end()) return;
    if (shape.kind == Kind::event && name.find("Record") != std::string_view::npos) {
      recorded_[handle] = last_on_stream_[stream->second];
    } else if (shape.kind == Kind::stream && name.find("Wait") != std::string_view::npos) {
      const auto known = recorded_.find(handle);
      if (known != recorded_.end() && known->second != kNone) {
        awaited_by_stream_[stream->second].push_back(known->second);
      }
    }
  }

  void add_work(uint32_t index, uint32_t call_begin) {
    const Work& w = work(index);
    const uint32_t begin = node(NodeKind::work_begin, index, w.begin);
    int64_t ready = INT64_MIN;
    // Work that did begin earlier than that could do so again.
    const auto after = [&](uint32_t from, int64_t weight, int64_t time) {
      if (from == kNone) return;
      edge(from, EdgeKind::order, weight + std::min<int64_t>(0, w.begin - time));
      ready = std::max(ready, std::min(time, w.begin));
    };
    if (call_begin != kNone) {
      after(call_begin, timeline_.launch_latency, call(w.call).begin + timeline_.launch_latency);
    }
    uint32_t& before = last_on_stream_[w.stream];
    if (before != kNone) after(work_end_[before], 0, work(before).end);
    for (const uint32_t awaited : awaited_by_stream_[w.stream]) {
      if (work(awaited).end <= w.begin + kCheapCallNs) {
        after(work_end_[awaited], 0, work(awaited).end);
      }
    }
    awaited_by_stream_[w.stream].clear();
    if (ready == INT64_MIN || w.begin - ready > kUnexplainedNs) {
      const uint32_t reason = ended_just_before(index);
      if (reason != kNone) after(work_end_[reason], 0, work(reason).end);
    }
    if (ready != INT64_MIN) graph_.delay[rank_][index] = w.begin - ready;
    before = index;
    add_work_end(index, begin);
  }

  void add_work_end(uint32_t index, uint32_t begin) {
    const Work& w = work(index);
    const uint32_t joint = joint_of_[index];
    const uint32_t end = work_end_[index] = node(NodeKind::work_end, index, w.end);
    edge(joint == kNone ? begin : join_nodes_[joint], EdgeKind::order, 0);
    const int64_t issued = w.call == kNone ? w.begin : call(w.call).begin;
    if (const Step* const step = timeline_.step_at(issued)) {
      graph_.step_ends[rank_][static_cast<size_t>(step - timeline_.steps.data())].push_back(end);
    }
  }

  // Work of another stream that ended as this one began.
  uint32_t ended_just_before(uint32_t index) const {
    const Work& w = work(index);
    auto at = std::partition_point(by_end_.begin(), by_end_.end(),
                                   [&](uint32_t i) { return work(i).end <= w.begin; });
    while (at != by_end_.begin()) {
      const uint32_t found = *--at;
      if (w.begin - work(found).end > kNearNs) break;
      if (found != index && work(found).stream != w.stream && work_end_[found] != kNone) {
        return found;
      }
    }
    return kNone;
  }

  std::vector<uint32_t> awaited_by(const Call& c, const std::vector<uint32_t>& own) const {
    if (c.blocking) return over_by(c, own);
    const int64_t length = c.end - c.begin;
    switch (c.kind) {
      case CallClass::synchronize: return over_by(c, synchronized_with(c));
      case CallClass::allocate:
        if (length > kLongFreeNs) return over_by(c, last_on_stream_);
        break;
      case CallClass::issue:
        if (length > kLongIssueNs) return ended_with(c);
        break;
    }
    return {};
  }

  std::vector<uint32_t> synchronized_with(const Call& c) const {
    const Event& event = timeline_.process->event(c.event);
    const Shape& shape = timeline_.trace->shape(event);
    const std::string_view name = timeline_.trace->text(shape.name);
    if (name.find("Stream") != std::string_view::npos) {
      const auto stream = stream_of_.find(shape.stream_handle);
      if (stream != stream_of_.end()) return {last_on_stream_[stream->second]};
    } else if (name.find("Event") != std::string_view::npos) {
      const auto known = recorded_.find(timeline_.process->extra(event).address2);
      if (known != recorded_.end()) return {known->second};
    }
    return last_on_stream_;
  }

  // Of `works`, those that really were over when the call ended.
  std::vector<uint32_t> over_by(const Call& c, const std::vector<uint32_t>& works) const {
    std::vector<uint32_t> out;
    for (const uint32_t w : works) {
      if (w != kNone && work_end_[w] != kNone && work(w).end <= c.end + kCheapCallNs) {
        out.push_back(w);
      }
    }
    return out;
  }

  std::vector<uint32_t> ended_with(const Call& c) const {
    const auto after = std::partition_point(by_end_.begin(), by_end_.end(),
                                            [&](uint32_t i) { return work(i).end <= c.end; });
    if (after == by_end_.begin()) return {};
    const uint32_t found = *std::prev(after);
    const bool near = c.end - work(found).end <= kNearNs && work(found).end > c.begin;
    return near && work_end_[found] != kNone ? std::vector<uint32_t>{found}
                                             : std::vector<uint32_t>{};
  }

  ReplayGraph& graph_;
  const Timeline& timeline_;
  const uint16_t rank_;
  const int64_t origin_;
  const std::vector<uint32_t>& joint_of_;
  const std::vector<uint32_t>& join_nodes_;
  std::vector<uint32_t> call_end_, work_end_;  // nodes
  std::vector<uint32_t> last_on_stream_;       // works
  std::vector<std::vector<uint32_t>> awaited_by_stream_;
  std::vector<uint32_t> last_call_;                   // by thread
  std::vector<uint32_t> by_end_;                      // works, in order of end
  std::unordered_map<uint64_t, uint32_t> recorded_;   // event handle -> work
  std::unordered_map<uint64_t, uint32_t> stream_of_;  // handle -> stream
};

// Depth first, without recursion. An edge that closes a circle (clocks of hosts that disagree) is
// not followed.
void sort_topologically(ReplayGraph& graph) {
  enum State : uint8_t { fresh, open, done };
  std::vector<uint8_t> state(graph.nodes.size(), fresh);
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // node, next edge
  graph.order.reserve(graph.nodes.size());
  for (uint32_t root = 0; root < graph.nodes.size(); ++root) {
    if (state[root] != fresh) continue;
    stack.push_back({root, 0});
    state[root] = open;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      const ReplayNode& node = graph.nodes[at];
      if (next < node.edge_count) {
        const uint32_t from = graph.edges[node.first_edge + next++].from;
        if (state[from] == fresh) {
          state[from] = open;
          stack.push_back({from, 0});
        }
      } else {
        state[at] = done;
        graph.order.push_back(at);
        stack.pop_back();
      }
    }
  }
}

// A join takes the begins of its works, which are nodes by now.
void connect_joins(ReplayGraph& graph, const RankComparison& ranks,
                   const std::vector<uint32_t>& join_nodes) {
  std::vector<std::vector<uint32_t>> begins(ranks.collectives.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const ReplayNode& node = graph.nodes[i];
    if (node.kind != NodeKind::work_begin) continue;
    const uint32_t joint = ranks.joint_of[node.rank][node.index];
    if (joint != kNone) begins[joint].push_back(i);
  }
  for (size_t joint = 0; joint < begins.size(); ++joint) {
    ReplayNode& node = graph.nodes[join_nodes[joint]];
    node.first_edge = static_cast<uint32_t>(graph.edges.size());
    node.edge_count = static_cast<uint32_t>(begins[joint].size());
    for (const uint32_t begin : begins[joint]) {
      graph.edges.push_back({begin, EdgeKind::order, 0});
      node.recorded = std::max(node.recorded, graph.nodes[begin].recorded);
    }
  }
}

}  // namespace

ReplayGraph make_replay_graph(std::span<const Timeline> timelines, const RankComparison& ranks) {
  ReplayGraph graph;
  graph.quiet.resize(timelines.size());
  graph.delay.resize(timelines.size());
  graph.step_ends.resize(timelines.size());
  int64_t origin = INT64_MAX;
  for (const Timeline& timeline : timelines) {
    for (const Call& call : timeline.calls) origin = std::min(origin, call.begin);
    for (const Work& work : timeline.works) origin = std::min(origin, work.begin);
  }
  std::vector<uint32_t> join_nodes;
  for (uint32_t i = 0; i < ranks.collectives.size(); ++i) {
    join_nodes.push_back(i);
    graph.nodes.push_back({NodeKind::join, 0, i, 0, 0, 0});
  }
  for (size_t rank = 0; rank < timelines.size(); ++rank) {
    RankBuilder(graph, timelines[rank], static_cast<uint16_t>(rank), origin, ranks.joint_of[rank],
                join_nodes)
        .run();
  }
  connect_joins(graph, ranks, join_nodes);
  sort_topologically(graph);
  return graph;
}

}  // namespace gpuprof::analysis
