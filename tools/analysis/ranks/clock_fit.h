// SPDX-License-Identifier: Apache-2.0
// Clocks of hosts from moments that several of them saw: lines by least squares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/analysis/ranks/move_times.h"

namespace gpuprof::analysis {

// A collective's end, as each host's clock has it: `base` plus so many ns.
struct JointEnds {
  struct End {
    uint32_t host;
    double after_base;
  };
  int64_t base;
  std::vector<End> ends;
};

struct ClockFit {
  ClockLine line;          // against host 0
  double error_ns = 0;     // three standard errors, at their largest in what the host recorded
  size_t collectives = 0;  // 0: nothing in common with host 0, or with hosts that have
};

// What a host recorded, ns by its own clock.
struct HostTime {
  int64_t begin = INT64_MAX, end = INT64_MIN;
};

// A line for each host. Collectives that stand out are left out.
std::vector<ClockFit> fit_clocks(const std::vector<JointEnds>& collectives,
                                 const std::vector<HostTime>& hosts);

}  // namespace gpuprof::analysis
