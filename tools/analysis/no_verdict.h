// SPDX-License-Identifier: Apache-2.0
// Reasons for no verdict that the figures of a report give.
#pragma once

#include <string>

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

struct LargestPart {
  std::string name;
  double percent = 0;  // of step time
};
// Of what keeps GPUs idle. `waited_pct`: of the time, in collectives for other ranks.
LargestPart largest_idle_part(const Report& report, double waited_pct = 0);

// What of the waiting in collectives no kernel ran beside. Per cent of step time.
double exposed_pct(const Report& report, double waited_pct);
// Neither is the GPU the limit, nor would any fix make steps shorter.
std::string nothing_explains(const Report& report, double waited_pct);
// Whether GPUs are idle beside issued work for longer than all that the first cause has. What such
// work waits for would be the cause.
bool stalls_outweigh_causes(const Report& report);
std::string stalled_reason(const Report& report);  // then

}  // namespace gpuprof::analysis
