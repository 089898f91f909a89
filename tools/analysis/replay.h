// SPDX-License-Identifier: Apache-2.0
// What a step would take without one of its causes of delay. The recorded calls and work of all
// ranks are a graph of dependencies (replay_graph.h); replayed as recorded it gives the recorded
// times, with the weights of one cause taken away, what would be left.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/ranks.h"
#include "tools/analysis/replay_graph.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

class Replay {
 public:
  // Replays once, under all fixes at a time. Memory: a piece of the graph, which ends where no
  // collective is under way.
  Replay(std::span<const Timeline> timelines, const RankComparison& ranks);

  // ns for a step, the mean over ranks: from the end of the first step's work to the end of the
  // last step's, divided by the steps between. 0: fewer than two steps with work. Of whole windows,
  // and where a rank's first step is longer than two others: from the begin of the first. Steps in
  // which it is not known what the GPU did are left out.
  double step_time(Fix fix) const { return step_times_[static_cast<size_t>(fix)]; }
  // The median step in place of the mean, from the end of one step's work to that of the next: what
  // happens once does not count. 0: fewer than three steps with work.
  double median_step_time(Fix fix) const { return median_times_[static_cast<size_t>(fix)]; }
  // The same as it was recorded: how true the replay is.
  double recorded_step_time() const { return step_times_[kFixes]; }

 private:
  // By Fix, and as it was recorded.
  template <typename T>
  using Times = std::array<T, kFixes + 1>;

  void run(std::span<const Timeline> timelines, const RankComparison& ranks);
  void finish_piece(ReplayPiece& piece, std::vector<RankReplay>& ranks);
  double mean_step(size_t which) const;
  double median_step(size_t which) const;

  // By rank and step: when the last work that was issued in it was over; INT64_MIN: none was.
  std::vector<std::vector<Times<int64_t>>> step_ends_;
  std::vector<int64_t> window_begins_;  // by rank; INT64_MIN: its first step's end counts
  std::vector<size_t> first_known_;     // by rank: its first step with all that the GPU did
  Times<double> step_times_{}, median_times_{};
};

}  // namespace gpuprof::analysis
