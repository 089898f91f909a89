// SPDX-License-Identifier: Apache-2.0
// What a step would take without one of its causes of delay. The recorded calls and work of all
// ranks are a graph of dependencies (replay_graph.h). Replayed as recorded it gives the recorded
// times; without the weights of one cause it gives what would be left.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/analysis/ranks.h"
#include "tools/analysis/replay/replay_graph.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Beyond these a replay is given up.
struct ReplayLimits {
  size_t nodes = size_t{1} << 22;  // of a piece, some 200 bytes each
  // Of the thread's processor time, as its first hundredth tells. A thousand ranks of 17,500 events
  // take ten.
  double seconds = 120;
};

class Replay {
 public:
  // Replays once, under all fixes at a time. Memory: a piece of the graph, which ends where no
  // collective is under way, and what each rank's later work may depend on. Time: grows with the
  // events, whatever the number of ranks.
  Replay(std::span<const Timeline> timelines, const RankComparison& ranks,
         ReplayLimits limits = {});

  // ns for a step, the mean over ranks: from the end of the first step's work to the end of the
  // last step's, without time between steps, divided by the steps between. 0: fewer than two steps
  // with work. Of whole windows, and where a rank's first step is longer than two others: from the
  // begin of the first. Steps that some rank does not have (RankComparison::joint_steps), and those
  // in which it is not known what the GPU did, are left out.
  double step_time(Fix fix) const { return step_times_[static_cast<size_t>(fix)]; }
  // The median step in place of the mean, from the end of one step's work to that of the next: what
  // happens once does not count. 0: fewer than three steps with work.
  double median_step_time(Fix fix) const { return median_times_[static_cast<size_t>(fix)]; }
  // The same as it was recorded: how true the replay is.
  double recorded_step_time() const { return step_times_[kFixes]; }
  // False: it was given up, all times are 0. It would take too long, or so many calls lie between
  // two moments at which no collective is under way that what they depend on fits into no memory.
  bool ended() const { return ended_; }
  // Not ended: for how long it would have gone on; 0: it was memory.
  double would_take_seconds() const { return would_take_; }
  // Clocks of ranks contradict each other: times mean nothing. Empty: they do not.
  const std::string& contradiction() const { return contradiction_; }
  // How often a time was carried from one piece to the next, by node of the graph: what the replay
  // does beside working out each node once.
  double carried() const {
    return nodes_ ? static_cast<double>(carried_) / static_cast<double>(nodes_) : 0;
  }

 private:
  bool run(std::span<const Timeline> timelines, const RankComparison& ranks);
  bool in_time(double begun, size_t events);
  void finish_piece(ReplayPiece& piece, std::vector<RankReplay>& ranks);
  // Of a rank's steps: which, and when each ended, without the time between them.
  using Ends = std::vector<std::pair<size_t, int64_t>>;
  Ends ends_of(size_t rank, size_t which) const;
  double mean_step(size_t which) const;
  double median_step(size_t which) const;

  ReplayStepEnds step_ends_;
  std::vector<int64_t> window_begins_;         // by rank; INT64_MIN: its first step's end counts
  std::vector<StepRange> measured_;            // by rank: the steps that count
  std::vector<std::vector<int64_t>> between_;  // by rank and step: time between steps before it
  std::array<double, kFixes + 1> step_times_{}, median_times_{};  // as ReplayStepEnds::Times
  bool ended_ = true;
  const ReplayLimits limits_;
  double would_take_ = 0;
  size_t nodes_ = 0, carried_ = 0;
  std::string contradiction_;
};

}  // namespace gpuprof::analysis
