// SPDX-License-Identifier: Apache-2.0
// What CUPTI does wrong depends on what was done with it before: sessions, registered clocks,
// records given so far.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "tests/simcuda/core/port.h"

namespace gpuprof::simcuda {

// A session lasts from the first activity kind that is enabled to the last one that is disabled.
class Faults {
 public:
  void session_begins();
  void session_ends();
  // A clock was registered; the default one counts from then on as one of before.
  void clock_registered();

  // What CUPTI says of this work in place of what is so. False: nothing.
  struct Told {
    uint32_t correlation;
    bool default_clock = false;  // its times are those of the default clock
    bool no_times = false, reversed_times = false;
  };
  bool tell(const GpuOpInfo& op, Told& out);

 private:
  uint32_t graph_correlation(const GpuOpInfo& op);

  std::mutex mutex_;
  uint32_t session_ = 0;
  uint64_t work_in_session_ = 0;
  uint64_t kernels_ = 0, kernels_in_session_ = 0;
  uint32_t clocks_ = 0;  // registered so far
  bool dead_ = false;
  uint32_t first_launch_ = 0;  // the first graph launch that had a record
  struct Launches {
    uint32_t last, previous;
  };
  std::map<uint32_t, Launches> graphs_;
};

}  // namespace gpuprof::simcuda
