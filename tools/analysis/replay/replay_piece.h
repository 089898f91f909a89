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

struct ReplayNode {
  uint32_t first_edge = 0, edge_count = 0;
  uint32_t step = kNone;  // of the work that ends here: the step that it was issued in
  uint32_t own = kNone;   // what passes here beside what edges say, in `owns`; kNone: no time
  uint32_t rank = 0;      // index of the timeline
  int64_t recorded = 0;   // ns since the earliest node; holds where there are no edges
};

// Nodes are known by number: the kept ones first, of which only the times are known, then those of
// `nodes`.
class ReplayPiece {
 public:
  uint32_t add(uint32_t rank, int64_t recorded);
  // To the node that was made last.
  void add_edge(ReplayEdge edge);
  void set_own(const FixTimes& own);
  void set_step(uint32_t step) { nodes_.back().step = step; }

  // A collective's part on `rank` begins at node `begin`. Returns the node at which all have come.
  uint32_t arrive(uint32_t joint, const JointCollective& collective, uint32_t rank, uint32_t begin);
  // Of the collectives that some ranks have come to: how many still lack this rank.
  size_t lacks(uint32_t rank) const { return rank < lacks_.size() ? lacks_[rank] : 0; }
  bool whole() const { return open_ == 0; }

  size_t size() const { return nodes_.size(); }  // without the kept ones
  size_t kept() const { return kept_; }
  void work_out();
  // Calls `visit(const ReplayNode&, const FixTimes&)` with each node that was worked out.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (size_t i = 0; i < nodes_.size(); ++i) visit(nodes_[i], times_[kept_ + i]);
  }
  // Then a new piece: of this one only the times of nodes between begin_keeping() and restart() are
  // kept. Returns what the node will be.
  void begin_keeping();
  uint32_t keep(uint32_t node);
  void restart();

 private:
  struct Join {
    uint32_t node, missing;
    std::vector<uint32_t> begins;
  };
  ReplayNode& node(uint32_t number) { return nodes_[number - kept_]; }
  void find_order();
  FixTimes time_of(const ReplayNode& node) const;

  std::vector<ReplayNode> nodes_;
  std::vector<ReplayEdge> edges_;
  std::vector<FixTimes> owns_;
  std::vector<FixTimes> times_;               // of each node, once they are worked out
  std::unordered_map<uint32_t, Join> joins_;  // by joint collective
  std::vector<size_t> lacks_;                 // by rank
  size_t open_ = 0, kept_ = 0;
  std::vector<uint32_t> order_;  // every node after those it depends on
  std::vector<uint32_t> places_;
  std::vector<FixTimes> kept_times_;
};

}  // namespace gpuprof::analysis
