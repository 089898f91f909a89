// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay.h"

#include <algorithm>
#include <utility>

namespace gpuprof::analysis {
namespace {

double slower(double factor) { return std::max(1.0, factor); }

int64_t scaled(int64_t length, double factor) {
  return static_cast<int64_t>(static_cast<double>(length) / slower(factor));
}

}  // namespace

Replay::Replay(std::span<const Timeline> timelines, const RankComparison& ranks)
    : timelines_(timelines), ranks_(ranks), graph_(make_replay_graph(timelines, ranks)) {}

// What passes at a node beside what its edges say.
int64_t Replay::own_time(const ReplayNode& node, Fix fix) const {
  const Timeline& timeline = timelines_[node.rank];
  const RankSpeed& speed = ranks_.speeds[node.rank];
  switch (node.kind) {
    case NodeKind::call_begin: {
      QuietTime quiet = graph_.quiet[node.rank][node.index];
      if (fix == Fix::data_loading) quiet.loading = 0;
      if (fix == Fix::kernel_launch) quiet.brief = 0;
      if (fix == Fix::straggler) {
        quiet.loading = scaled(quiet.loading, speed.data_loading);
        quiet.brief = scaled(quiet.brief, speed.host);
        quiet.own = scaled(quiet.own, speed.host);
      }
      return quiet.loading + quiet.brief + quiet.own;
    }
    case NodeKind::work_begin: return graph_.delay[node.rank][node.index];
    case NodeKind::work_end: {
      const Work& work = timeline.works[node.index];
      if (work.kind == WorkClass::communication && fix == Fix::communication) return 0;
      if (work.kind == WorkClass::transfer && fix == Fix::transfer) return 0;
      const uint32_t joint = ranks_.joint_of[node.rank][node.index];
      int64_t begin = work.begin;
      if (joint != kNone) {
        for (const CollectivePart& part : ranks_.collectives[joint].parts) {
          begin = std::max(begin, timelines_[part.rank].works[part.work].begin);
        }
      }
      const int64_t length = std::max<int64_t>(0, work.end - begin);
      const bool scales = fix == Fix::straggler && work.kind == WorkClass::compute;
      return scales ? scaled(length, speed.compute) : length;
    }
    default: return 0;
  }
}

bool Replay::holds(const ReplayNode& node, const ReplayEdge& edge, Fix fix) const {
  if (node.kind != NodeKind::call_end) return true;
  const Call& call = timelines_[node.rank].calls[node.index];
  const Timeline& timeline = timelines_[node.rank];
  switch (fix) {
    case Fix::allocation: return call.kind != CallClass::allocate;
    case Fix::kernel_launch: return call.kind != CallClass::issue || edge.kind == EdgeKind::wait;
    case Fix::synchronization: {
      // A blocking copy to the host is a synchronisation by another name.
      const bool reads = call.blocking && call.first_work != kNone &&
                         timeline.shape(timeline.works[call.first_work].event).direction == 2;
      return call.kind != CallClass::synchronize && !reads;
    }
    case Fix::transfer: return !call.blocking;
    default: return true;
  }
}

std::vector<int64_t> Replay::evaluate(Fix fix) const {
  std::vector<int64_t> times(graph_.nodes.size());
  for (const uint32_t index : graph_.order) {
    const ReplayNode& node = graph_.nodes[index];
    if (node.edge_count == 0) {
      times[index] = node.recorded;
      continue;
    }
    int64_t earliest = INT64_MIN;
    for (uint32_t i = 0; i < node.edge_count; ++i) {
      const ReplayEdge& edge = graph_.edges[node.first_edge + i];
      // A call whose edge is taken away still ends no earlier than it began.
      if (holds(node, edge, fix)) {
        earliest = std::max(earliest, times[edge.from] + edge.weight);
      } else if (edge.kind == EdgeKind::duration) {
        earliest = std::max(earliest, times[edge.from]);
      }
    }
    times[index] = earliest + own_time(node, fix);
  }
  return times;
}

template <typename TimeOf>
double Replay::mean_step(TimeOf time_of) const {
  double sum = 0;
  size_t ranks = 0;
  for (const auto& steps : graph_.step_ends) {
    std::vector<std::pair<size_t, int64_t>> ends;
    for (size_t step = 0; step < steps.size(); ++step) {
      if (steps[step].empty()) continue;
      int64_t last = INT64_MIN;
      for (const uint32_t node : steps[step]) last = std::max(last, time_of(node));
      ends.push_back({step, last});
    }
    if (ends.size() < 2) continue;
    sum += static_cast<double>(ends.back().second - ends.front().second) /
           static_cast<double>(ends.back().first - ends.front().first);
    ++ranks;
  }
  return ranks ? sum / static_cast<double>(ranks) : 0;
}

double Replay::step_time(Fix fix) const {
  const std::vector<int64_t> times = evaluate(fix);
  return mean_step([&](uint32_t node) { return times[node]; });
}

double Replay::recorded_step_time() const {
  return mean_step([&](uint32_t node) { return graph_.nodes[node].recorded; });
}

}  // namespace gpuprof::analysis
