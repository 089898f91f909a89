// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay_piece.h"

#include <algorithm>
#include <utility>

namespace gpuprof::analysis {

void ReplayStepEnds::add_rank(size_t steps) {
  Times none;
  none.fill(INT64_MIN);
  ends_.emplace_back(steps, none);
}

void ReplayStepEnds::add(uint32_t rank, uint32_t step, const FixTimes& times, int64_t recorded) {
  Times& ends = ends_[rank][step];
  for (size_t fix = 0; fix < kFixes; ++fix) ends[fix] = std::max(ends[fix], times[fix]);
  ends[kFixes] = std::max(ends[kFixes], recorded);
}

uint32_t ReplayPiece::add(uint32_t rank, int64_t recorded) {
  finish_last();
  last_ = {static_cast<uint32_t>(places_.size()),
           rank,
           recorded,
           static_cast<uint32_t>(edges_.size()),
           0,
           kNone,
           kNone};
  places_.push_back(kNone);
  times_.emplace_back();
  return last_.number;
}

void ReplayPiece::add_edge(ReplayEdge edge) {
  if (edge.from == kNone) return;
  edges_.push_back(edge);
  ++last_.edge_count;
}

void ReplayPiece::set_own(const FixTimes& own) {
  if (own == FixTimes{}) return;
  last_.own = static_cast<uint32_t>(owns_.size());
  owns_.push_back(own);
}

void ReplayPiece::finish_last() {
  if (last_.number == kNone) return;
  const auto known = [&](const ReplayEdge& edge) { return places_[edge.from] == kNone; };
  if (std::all_of(edges_.begin() + last_.first_edge, edges_.end(), known)) {
    set_time(last_);
    edges_.resize(last_.first_edge);
    if (last_.own != kNone) owns_.pop_back();
  } else {
    places_[last_.number] = static_cast<uint32_t>(waiting_.size());
    waiting_.push_back(last_);
  }
  last_.number = kNone;
}

uint32_t ReplayPiece::arrive(uint32_t joint, const JointCollective& collective, uint32_t rank,
                             uint32_t begin) {
  const auto [at, fresh] = joins_.try_emplace(joint);
  Join& join = at->second;
  if (fresh) {
    join = {add(rank, 0), static_cast<uint32_t>(collective.parts.size()), {}};
    join.begins.reserve(collective.parts.size());
    places_[join.node] = static_cast<uint32_t>(waiting_.size());
    waiting_.push_back(last_);
    last_.number = kNone;
    ++open_;
    for (const CollectivePart& part : collective.parts) {
      if (lacks_.size() <= part.rank) lacks_.resize(part.rank + size_t{1});
      ++lacks_[part.rank];
    }
  }
  join.begins.push_back(begin);
  --lacks_[rank];
  if (--join.missing == 0) --open_;
  return join.node;
}

// Depth first, without recursion. An edge that closes a circle (clocks of hosts that disagree) is
// not followed.
void ReplayPiece::find_order() {
  order_.clear();
  enum State : uint8_t { fresh, open, done };
  const auto count = static_cast<uint32_t>(waiting_.size());
  std::vector<uint8_t> state(count, fresh);
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // node, next edge
  for (uint32_t root = 0; root < count; ++root) {
    if (state[root] != fresh) continue;
    stack.push_back({root, 0});
    state[root] = open;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      const Node& node = waiting_[at];
      if (next < node.edge_count) {
        const uint32_t from = places_[edges_[node.first_edge + next++].from];
        if (from != kNone && state[from] == fresh) {
          state[from] = open;
          stack.push_back({from, 0});
        }
      } else {
        state[at] = done;
        order_.push_back(at);
        stack.pop_back();
      }
    }
  }
}

FixTimes ReplayPiece::time_of(const Node& node) const {
  if (node.edge_count == 0) return same_times(node.recorded);
  FixTimes earliest = same_times(INT64_MIN);
  for (uint32_t i = 0; i < node.edge_count; ++i) {
    const ReplayEdge& edge = edges_[node.first_edge + i];
    const FixTimes& from = times_[edge.from];
    if (!edge.without) {
      for (size_t fix = 0; fix < kFixes; ++fix) {
        earliest[fix] = std::max(earliest[fix], from[fix] + edge.weight);
      }
      continue;
    }
    for (size_t fix = 0; fix < kFixes; ++fix) {
      const bool taken = edge.without >> fix & 1;
      if (taken && !edge.duration) continue;
      earliest[fix] = std::max(earliest[fix], from[fix] + (taken ? 0 : edge.weight));
    }
  }
  if (node.own != kNone) {
    for (size_t fix = 0; fix < kFixes; ++fix) earliest[fix] += owns_[node.own][fix];
  }
  return earliest;
}

void ReplayPiece::set_time(const Node& node) {
  const FixTimes& times = times_[node.number] = time_of(node);
  if (node.step != kNone) step_ends_.add(node.rank, node.step, times, node.recorded);
}

void ReplayPiece::work_out() {
  finish_last();
  for (const auto& [joint, join] : joins_) {
    Node& at = waiting_[places_[join.node]];
    at.first_edge = static_cast<uint32_t>(edges_.size());
    at.edge_count = static_cast<uint32_t>(join.begins.size());
    for (const uint32_t begin : join.begins) edges_.push_back({begin, 0, false, 0});
  }
  find_order();
  for (const uint32_t index : order_) set_time(waiting_[index]);
}

void ReplayPiece::begin_keeping() {
  std::fill(places_.begin(), places_.end(), kNone);
  kept_times_.clear();
}

uint32_t ReplayPiece::keep(uint32_t node) {
  if (places_[node] == kNone) {
    places_[node] = static_cast<uint32_t>(kept_times_.size());
    kept_times_.push_back(times_[node]);
  }
  return places_[node];
}

void ReplayPiece::restart() {
  times_.swap(kept_times_);
  kept_ = times_.size();
  places_.assign(kept_, kNone);
  waiting_.clear();
  edges_.clear();
  owns_.clear();
  joins_.clear();
  std::fill(lacks_.begin(), lacks_.end(), 0);
  open_ = 0;
}

}  // namespace gpuprof::analysis
