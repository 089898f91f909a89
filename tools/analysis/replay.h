// SPDX-License-Identifier: Apache-2.0
// What a step would take without one of its causes of delay. The recorded calls and work of all
// ranks are a graph of dependencies (replay_graph.h); replayed as recorded it gives the recorded
// times, with the weights of one cause taken away, what would be left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/analysis/ranks.h"
#include "tools/analysis/replay_graph.h"
#include "tools/analysis/timeline.h"

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
};

class Replay {
 public:
  // Both arguments must outlive the Replay.
  Replay(std::span<const Timeline> timelines, const RankComparison& ranks);

  // ns for a step, the mean over ranks: from the end of the first step's work to the end of the
  // last step's, divided by the steps between. 0: fewer than two steps with work.
  double step_time(Fix fix) const;
  // The same as it was recorded: how true the replay is.
  double recorded_step_time() const;

 private:
  std::vector<int64_t> evaluate(Fix fix) const;
  int64_t own_time(const ReplayNode& node, Fix fix) const;
  bool holds(const ReplayNode& node, const ReplayEdge& edge, Fix fix) const;
  template <typename TimeOf>
  double mean_step(TimeOf time_of) const;

  std::span<const Timeline> timelines_;
  const RankComparison& ranks_;
  ReplayGraph graph_;
};

}  // namespace gpuprof::analysis
