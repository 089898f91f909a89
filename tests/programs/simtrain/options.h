// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gpuprof::simtrain {

struct Options {
  int steps = 30;
  int layers = 8;
  double kernel_us = 200;
  int small_kernels = 0;  // per step
  double data_ms = 0;
  double h2d_mb = 1;
  bool pageable = false;
  int sync_every = 1;
  int malloc_per_step = 0;
  double comm_mb = 0;
  bool gathers = false;
  bool overlap = false;
  bool graphs = false;
  int ranks = 1;
  std::string rank_variable = "RANK";
  std::string slow_rank;  // R:FACTOR
  std::string asleep;     // R:STEP[:SECONDS]
  std::string markers = "nvtx";
  std::string profile_steps = "10-14";  // FIRST-LAST,...
  uint64_t seed = 1;
  int threads = 1;

  int rank = 0;  // from the rank's variable
  bool launches_ranks = false;
  double kernel_factor = 1;
  int asleep_in = -1;     // the step in which this rank stands; -1: none
  unsigned asleep_s = 0;  // 0: for ever
};

// Exits with CLI11's code on bad usage or --help.
Options parse_options(int argc, char** argv);

}  // namespace gpuprof::simtrain
