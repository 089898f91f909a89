// SPDX-License-Identifier: Apache-2.0
// The dependencies of what was recorded: order of calls on a thread, launch to work, order of work
// on a stream, event waits, host synchronisation. A collective begins when the last rank has come.
// Some dependencies are not recorded (inside a graph, say). The graph takes these from the times:
// work that began as other work ended, and had no other reason to wait.
//
// The graph exists piece by piece. It makes nodes in the order of calls, works out their times, and
// keeps only the times that later nodes may depend on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tools/analysis/processor_time.h"
#include "tools/analysis/ranks.h"
#include "tools/analysis/replay/replay_clocks.h"
#include "tools/analysis/replay/replay_piece.h"
#include "tools/analysis/timeline.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {

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
  RankReplay(const Timeline& timeline, const RankComparison& ranks, uint32_t rank, int64_t origin,
             int64_t begin, const ReplayClocks& clocks, ReplayPiece& piece);

  bool at_end() const { return calls_.at_end() && orphans_.at_end(); }
  // The next call, and what it caused.
  void advance();

  // Of what has ended, what is too long ago to be a reason for what is still to come.
  void forget_old();

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
    // `waited` of `all`: the thread had no processor. What keeps it from one is a cause of its own.
    struct Share {
      int64_t all, waited;
      int64_t with_processor() const { return std::max<int64_t>(0, all - waited); }
    };
    // In its data loader. Of a thread that does nothing meanwhile: in that of the thread that steps
    // run on.
    Share loading;
    Share brief;   // in the framework's operators, and in stretches of at most kOwnWorkNs
    Share own;     // in longer ones
    int64_t kept;  // of none of these: between steps, or the thread worked for the profiler
    int64_t waited() const { return loading.waited + brief.waited + own.waited; }
  };

  void skip_to_orphan();
  void add_orphans_before(int64_t time);
  void add_call(const Call& call);
  uint32_t add_call_begin(const Call& call);
  const LastCall* latest_other_call(const Call& call) const;
  QuietTime quiet_time(const Call& call, int64_t since) const;
  void add_stretch(Interval time, uint32_t thread, QuietTime& out) const;
  void add_quiet(Interval time, uint32_t thread, QuietTime::Share& share, QuietTime& out) const;
  void add_own(Interval time, uint32_t thread, QuietTime& out) const;
  int64_t loading(uint32_t thread, int64_t begin, int64_t end) const;
  int64_t unloaded(const Call& call, int64_t since) const;
  bool may_change(int64_t time) const;
  FixTimes own_times(const QuietTime& quiet) const;
  void note_event_calls(const Call& call);
  WorkEnd add_work(const Work& work, const Call* call, uint32_t call_begin);
  int64_t held_back(const Work& work, const Call& call, int64_t ready) const;
  uint32_t add_work_end(const Work& work, int64_t issued, uint32_t begin);
  const JointCollective* begins_part(const JointCollective& collective, uint32_t event) const;
  FixTimes lengths(const Work& work, int64_t begin, int64_t issued) const;
  const WorkEnd* ended_just_before(const Work& work) const;
  const WorkEnd* ended_with(const Call& call) const;
  void find_awaited(const Call& call);
  void add_awaited(const Call& call, std::span<const WorkEnd> works);
  void find_synchronized(const Call& call);
  FixSet fixes_without(const Call& call) const;
  void add_profiling_edge(const Call& call, uint32_t begin);
  void add_call_edge(ReplayEdge edge, int64_t waited);
  void remember(const WorkEnd& work);
  void add_ends_of_stream(uint32_t stream, std::vector<WorkEnd>& out) const;

  const Timeline& timeline_;
  const RankComparison& ranks_;
  const uint32_t rank_;
  const int64_t origin_;
  const ReplayClocks& clocks_;
  ReplayPiece& piece_;
  const Intervals between_;  // steps
  MergedWalk<ThreadWalk> calls_;
  MergedWalk<StreamWalk> orphans_;
  size_t step_ = 0;
  std::vector<LastCall> last_call_;       // by thread
  std::vector<ProcessorTime> processor_;  // by thread
  std::vector<WorkEnd> last_on_stream_;   // by stream
  std::vector<std::vector<WorkEnd>> awaited_by_stream_;
  std::unordered_map<uint64_t, std::vector<WorkEnd>> recorded_;  // by event handle
  std::unordered_map<uint64_t, uint32_t> stream_of_;             // by handle
  std::vector<WorkEnd> recent_;  // that later work may have begun after, in order of end
  size_t recent_limit_ = 64;     // more of them are looked through for what can be forgotten
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
  for (auto& [handle, works] : recorded_) {
    for (WorkEnd& work : works) keep(work);
  }
  for (WorkEnd& work : recent_) keep(work);
}

}  // namespace gpuprof::analysis
