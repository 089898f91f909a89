// SPDX-License-Identifier: Apache-2.0
// Which rank makes the others wait, and by what part of its own work. In which steps: most since
// some step, at equal distances, or once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpuprof::analysis {

constexpr double kCountsPart = 0.01;  // of a step: ranks that differ by less are equally fast

// What a rank itself does in each of its steps, us.
struct StepTimes {
  int32_t rank = -1;
  std::vector<uint64_t> steps;
  std::vector<double> compute, data_loading, host;  // by step; host: without what follows
  std::vector<double> copies;                       // on the GPU
  std::vector<double> allocation;  // in the host's calls, while the GPU had nothing to do
  std::vector<double> launches;    // in calls that hand over work, likewise
  std::vector<double> processor;   // the host's thread could run and had no processor
  std::vector<double> waited;      // in collectives for the last rank; empty: not known
  bool throttled = false;          // the GPU said that it lowered its clock
};

// `throttled`: kernels of a GPU that lowered its clock, where the median rank's did not.
enum class SlowPart : uint8_t {
  compute,
  data_loading,
  host,
  copies,
  allocation,
  launches,
  processor,
  throttled,
};
enum class SlowPattern : uint8_t { persistent, periodic, one_off };

struct SlowRank {
  int32_t rank;
  SlowPattern pattern;
  SlowPart part;
  uint64_t since;        // the first of its slow steps
  size_t steps;          // how many they are
  uint64_t period;       // periodic: steps from one to the next
  double excess_us = 0;  // beyond the median rank, in the median of these steps
  double factor = 1;     // the part's time to that of the median rank, likewise
};

// Of ranks that did at least four steps in common. A part is slow in a step if it exceeds the
// median rank's by a hundredth of the median step (`step_us`) and by more than ranks usually
// differ. Where waits are known, the others must wait longer than the rank in such steps, or in
// those that follow, by a hundredth of a step; once, by half of the excess. Most excess over all
// steps first.
std::vector<SlowRank> find_slow_ranks(std::span<const StepTimes> ranks, double step_us);

// "rank 2: kernels 1.50 x the median rank's, 3.2 ms more, in 9 steps since step 12"
std::string describe(const SlowRank& slow);
// The same without the rank.
std::string excess_of(const SlowRank& slow);

}  // namespace gpuprof::analysis
