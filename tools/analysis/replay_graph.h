// SPDX-License-Identifier: Apache-2.0
// The dependencies of what was recorded: the order of calls on a thread, from a launch to its work,
// the order of work on a stream, event waits, and host synchronisation. A collective begins when
// the last rank has come. Some dependencies are not recorded (inside a graph, say). The graph takes
// these from the times: work that began as other work ended, and had no other reason to wait.
//
// The graph exists piece by piece. It makes nodes in the order of calls, works out their times, and
// keeps only the times that later nodes may depend on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tools/analysis/processor_time.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/timeline.h"
#include "tools/analysis/walks.h"

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
  uint16_t rank = 0;      // index of the timeline
  int64_t recorded = 0;   // ns since the earliest node; holds where there are no edges
  FixTimes own{};         // what passes here beside what edges say
};

// One piece of the graph. Nodes are known by their index in it.
class ReplayPiece {
 public:
  std::vector<ReplayNode> nodes;
  std::vector<ReplayEdge> edges;
  std::vector<FixTimes> times;  // of each node, once they are worked out

  uint32_t add(uint16_t rank, int64_t recorded);
  // To the node that was made last.
  void add_edge(ReplayEdge edge);

  // A collective's part on `rank` begins at node `begin`. Returns the node at which all have come.
  uint32_t arrive(uint32_t joint, const JointCollective& collective, uint16_t rank, uint32_t begin);
  // Of the collectives that some ranks have come to: how many still lack this rank.
  size_t lacks(uint16_t rank) const { return rank < lacks_.size() ? lacks_[rank] : 0; }
  bool whole() const { return open_ == 0; }

  void work_out();
  size_t kept() const { return kept_; }  // the first nodes, of which only the times are known
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
  void find_order();
  FixTimes time_of(const ReplayNode& node) const;

  std::unordered_map<uint32_t, Join> joins_;  // by joint collective
  std::vector<size_t> lacks_;                 // by rank
  size_t open_ = 0, kept_ = 0;
  std::vector<uint32_t> order_;  // every node after those it depends on
  std::vector<uint32_t> places_;
  std::vector<FixTimes> kept_times_;
};

// Work that is over at a node.
struct WorkEnd {
  int64_t end = 0;
  uint32_t stream = 0;
  uint32_t node = kNone;  // kNone: there is none
};

// Makes the nodes of one rank, call after call in order of begin over all threads. Work whose call
// was not recorded comes when it begins.
class RankReplay {
 public:
  // All must outlive it. `origin`: the time of the earliest node of all ranks. `begin`: since when
  // time before the first call is looked at, too; INT64_MIN: it is not.
  RankReplay(const Timeline& timeline, const RankComparison& ranks, uint16_t rank, int64_t origin,
             int64_t begin, ReplayPiece& piece);

  bool at_end() const { return calls_.at_end() && orphans_.at_end(); }
  // The next call, and what it caused.
  void advance();

  // Calls `visit(uint32_t& node)` with each node that later ones may depend on.
  template <typename Visit>
  void each_kept(const Visit& visit);

 private:
  struct LastCall {
    int64_t end = 0;
    uint32_t node = kNone;
  };
  // A thread's time before a call, since the call (of this thread, or of one it waited for) before
  // it.
  struct QuietTime {
    int64_t loading;  // in its data loader
    int64_t brief;    // in the framework's operators, and in stretches of at most kOwnWorkNs
    int64_t own;      // in longer ones
    int64_t waited;   // of all this: the thread had no processor
  };

  void skip_to_orphan();
  void add_orphans_before(int64_t time);
  void add_call(const Call& call);
  uint32_t add_call_begin(const Call& call);
  const LastCall* latest_other_call(const Call& call) const;
  QuietTime quiet_time(const Call& call, int64_t since) const;
  void add_stretch(Interval time, const ProcessorTime& processor, QuietTime& out) const;
  FixTimes own_times(const QuietTime& quiet) const;
  void note_event_calls(const Call& call);
  WorkEnd add_work(const Work& work, const Call* call, uint32_t call_begin);
  int64_t held_back(const Work& work, const Call& call, int64_t ready) const;
  uint32_t add_work_end(const Work& work, int64_t issued, uint32_t begin);
  FixTimes lengths(const Work& work, const JointCollective* joint) const;
  const WorkEnd* ended_just_before(const Work& work) const;
  const WorkEnd* ended_with(const Call& call) const;
  void find_awaited(const Call& call);
  void add_awaited(const Call& call, const WorkEnd& work);
  void find_synchronized(const Call& call);
  FixSet fixes_without(const Call& call) const;
  void add_call_edge(ReplayEdge edge, int64_t waited);
  void remember(const WorkEnd& work);

  const Timeline& timeline_;
  const RankComparison& ranks_;
  const uint16_t rank_;
  const int64_t origin_;
  ReplayPiece& piece_;
  MergedWalk<ThreadWalk> calls_;
  MergedWalk<StreamWalk> orphans_;
  size_t step_ = 0;
  std::vector<LastCall> last_call_;       // by thread
  std::vector<ProcessorTime> processor_;  // by thread
  std::vector<WorkEnd> last_on_stream_;   // by stream
  std::vector<std::vector<WorkEnd>> awaited_by_stream_;
  std::unordered_map<uint64_t, WorkEnd> recorded_;    // by event handle
  std::unordered_map<uint64_t, uint32_t> stream_of_;  // by handle
  std::vector<WorkEnd> recent_;  // that later work may have begun after, in order of end
  std::vector<Work> works_;      // of the call at hand
  std::vector<WorkEnd> own_, awaited_;
};

template <typename Visit>
void RankReplay::each_kept(const Visit& visit) {
  const auto keep = [&](WorkEnd& work) {
    if (work.node != kNone) visit(work.node);
  };
  for (LastCall& call : last_call_) {
    if (call.node != kNone) visit(call.node);
  }
  for (WorkEnd& work : last_on_stream_) keep(work);
  for (auto& works : awaited_by_stream_) {
    for (WorkEnd& work : works) keep(work);
  }
  for (auto& [handle, work] : recorded_) keep(work);
  for (WorkEnd& work : recent_) keep(work);
}

}  // namespace gpuprof::analysis
