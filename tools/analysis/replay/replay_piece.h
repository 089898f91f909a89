// SPDX-License-Identifier: Apache-2.0
// A piece of the graph of dependencies: nodes are moments, edges say what is not before what. Of
// the pieces before it only the times that later nodes may depend on are left.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tools/analysis/ranks.h"

namespace gpuprof::analysis {

// What to take away. Each is the usual fix of that cause, at its best.
enum class Fix : uint8_t {
  none,
  data_loading,     // data is there when the training thread asks: no time in its loader's ranges
  kernel_launch,    // issuing work costs the thread nothing, as in a CUDA graph
  allocation,       // a caching allocator: no time in, and no wait for, cudaMalloc and cudaFree
  synchronization,  // nothing waits for the GPU: no .item(), no cudaDeviceSynchronize
  communication,    // collectives take no time, but begin when the last rank has come
  transfer,         // copies take no time, and nobody waits for one
  straggler,        // no rank is slower than the median one
  host_work,        // the threads that issue work do nothing of their own beside it
  machine_busy,     // these threads have a processor whenever they can run
};
inline constexpr size_t kFixes = static_cast<size_t>(Fix::machine_busy) + 1;  // the last
// A set of fixes, a bit each.
using FixSet = uint16_t;
static_assert(kFixes <= 8 * sizeof(FixSet));
using FixTimes = std::array<int64_t, kFixes>;  // ns, by Fix

inline FixTimes same_times(int64_t time) {
  FixTimes out;
  out.fill(time);
  return out;
}

// The node it belongs to is not before the time of `from` plus `weight`.
struct ReplayEdge {
  uint32_t from;
  // Fixes that take the edge away; `duration`: from the begin of a call to its end, which is then
  // still no earlier.
  FixSet without;
  bool duration;
  int64_t weight;  // ns
};

// When the last work of each rank's steps was over.
class ReplayStepEnds {
 public:
  using Times = std::array<int64_t, kFixes + 1>;  // ns, by Fix, and as it was recorded

  void add_rank(size_t steps);
  void add(uint32_t rank, uint32_t step, const FixTimes& times, int64_t recorded);
  size_t ranks() const { return ends_.size(); }
  // By step; INT64_MIN: no work was issued in it.
  const std::vector<Times>& of(size_t rank) const { return ends_[rank]; }

 private:
  std::vector<std::vector<Times>> ends_;  // by rank
};

// Nodes are known by number: the kept ones first, of which only the times are known, then those of
// this piece. A node's time is worked out as soon as the next one is made, if all that it depends
// on is known by then. What depends on a collective waits for work_out().
class ReplayPiece {
 public:
  explicit ReplayPiece(ReplayStepEnds& step_ends) : step_ends_(step_ends) {}

  // `recorded`: ns since the earliest node; holds where there are no edges.
  uint32_t add(uint32_t rank, int64_t recorded);
  // To the node that was made last.
  void add_edge(ReplayEdge edge);
  void set_own(const FixTimes& own);  // time that passes there beside what edges say
  void set_step(uint32_t step) { last_.step = step; }  // of the work that ends there: its call's

  // A collective's part on `rank` begins at node `begin`. Returns the node at which all have come.
  uint32_t arrive(uint32_t joint, const JointCollective& collective, uint32_t rank, uint32_t begin);
  // Of the collectives that some ranks have come to: how many still lack this rank.
  size_t lacks(uint32_t rank) const { return rank < lacks_.size() ? lacks_[rank] : 0; }
  bool whole() const { return open_ == 0; }

  size_t size() const { return places_.size() - kept_; }  // without the kept ones
  size_t kept() const { return kept_; }
  void work_out();
  // Then a new piece: of this one only the times of nodes between begin_keeping() and restart() are
  // kept. Returns what the node will be.
  void begin_keeping();
  uint32_t keep(uint32_t node);
  void restart();

 private:
  struct Node {
    uint32_t number = kNone;  // kNone: there is none
    uint32_t rank = 0;
    int64_t recorded = 0;
    uint32_t first_edge = 0, edge_count = 0;
    uint32_t own = kNone;   // in `owns_`; kNone: no time
    uint32_t step = kNone;  // kNone: no work ends there that was issued in one
  };
  struct Join {
    uint32_t node, missing;
    std::vector<uint32_t> begins;
  };
  void finish_last();
  void find_order();
  FixTimes time_of(const Node& node) const;
  void set_time(const Node& node);

  ReplayStepEnds& step_ends_;
  Node last_;                      // the one that was made last
  std::vector<Node> waiting_;      // nodes whose times are not known yet
  std::vector<ReplayEdge> edges_;  // those of `waiting_`, then those of `last_`
  std::vector<FixTimes> owns_;     // likewise
  std::vector<FixTimes> times_;    // of each node
  // Of each node its place in `waiting_`; kNone: its time is known. While nodes are kept: what it
  // will be.
  std::vector<uint32_t> places_;
  std::unordered_map<uint32_t, Join> joins_;  // by joint collective
  std::vector<size_t> lacks_;                 // by rank
  size_t open_ = 0, kept_ = 0;
  std::vector<uint32_t> order_;  // of `waiting_`: every node after those it depends on
  std::vector<FixTimes> kept_times_;
};

}  // namespace gpuprof::analysis
