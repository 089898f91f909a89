// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/replay/replay_piece.h"

#include <algorithm>
#include <utility>

namespace gpuprof::analysis {

uint32_t ReplayPiece::add(uint32_t rank, int64_t recorded) {
  ReplayNode node;
  node.first_edge = static_cast<uint32_t>(edges_.size());
  node.rank = rank;
  node.recorded = recorded;
  nodes_.push_back(node);
  return static_cast<uint32_t>(kept_ + nodes_.size()) - 1;
}

void ReplayPiece::add_edge(ReplayEdge edge) {
  if (edge.from == kNone) return;
  edges_.push_back(edge);
  ++nodes_.back().edge_count;
}

void ReplayPiece::set_own(const FixTimes& own) {
  if (own == FixTimes{}) return;
  nodes_.back().own = static_cast<uint32_t>(owns_.size());
  owns_.push_back(own);
}

uint32_t ReplayPiece::arrive(uint32_t joint, const JointCollective& collective, uint32_t rank,
                             uint32_t begin) {
  const auto [at, fresh] = joins_.try_emplace(joint);
  Join& join = at->second;
  if (fresh) {
    join = {add(rank, 0), static_cast<uint32_t>(collective.parts.size()), {}};
    join.begins.reserve(collective.parts.size());
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

// As they were made; with collectives depth first, without recursion. An edge that closes a circle
// (clocks of hosts that disagree) is not followed.
void ReplayPiece::find_order() {
  order_.clear();
  const auto count = static_cast<uint32_t>(nodes_.size());
  if (joins_.empty()) {
    for (uint32_t i = 0; i < count; ++i) order_.push_back(i);
    return;
  }
  enum State : uint8_t { fresh, open, done };
  std::vector<uint8_t> state(count, fresh);
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // node, next edge
  for (uint32_t root = 0; root < count; ++root) {
    if (state[root] != fresh) continue;
    stack.push_back({root, 0});
    state[root] = open;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      const ReplayNode& node = nodes_[at];
      if (next < node.edge_count) {
        const uint32_t from = edges_[node.first_edge + next++].from;
        if (from >= kept_ && state[from - kept_] == fresh) {
          state[from - kept_] = open;
          stack.push_back({static_cast<uint32_t>(from - kept_), 0});
        }
      } else {
        state[at] = done;
        order_.push_back(at);
        stack.pop_back();
      }
    }
  }
}

FixTimes ReplayPiece::time_of(const ReplayNode& node) const {
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

void ReplayPiece::work_out() {
  for (const auto& [joint, join] : joins_) {
    ReplayNode& at = node(join.node);
    at.first_edge = static_cast<uint32_t>(edges_.size());
    at.edge_count = static_cast<uint32_t>(join.begins.size());
    for (const uint32_t begin : join.begins) edges_.push_back({begin, 0, false, 0});
  }
  times_.resize(kept_ + nodes_.size());
  find_order();
  for (const uint32_t index : order_) times_[kept_ + index] = time_of(nodes_[index]);
}

void ReplayPiece::begin_keeping() {
  places_.assign(kept_ + nodes_.size(), kNone);
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
  nodes_.clear();
  edges_.clear();
  owns_.clear();
  joins_.clear();
  std::fill(lacks_.begin(), lacks_.end(), 0);
  open_ = 0;
}

}  // namespace gpuprof::analysis
