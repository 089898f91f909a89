// SPDX-License-Identifier: Apache-2.0
// How a part's time spreads over the steps: in each of them about as much, or in few of them nearly
// all. docs/REPORT.md, "Steady causes and those of few steps", has the definitions.
#pragma once

#include <cstddef>
#include <string>

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

inline constexpr double kStandsOut = 2;      // times the median
inline constexpr double kSteadyShare = 0.5;  // with less within that, it lies in few steps
inline constexpr double kOfLongest = 0.2;    // shorter ones are not what it is made of

struct Spread {
  // Of a step's wall time, over all steps: the median, and what nine of ten are above and below.
  double median_pct = 0, low_pct = 0, high_pct = 0;
  double steady = 1;  // 0 to 1: what is left of the time if no step had more than twice its rank's
                      // median; 1 where a rank has fewer than three steps
  size_t few = 0;     // that many steps hold what is beyond that, where it is over half of all
  double longest_us = 0;  // of these
  double median_us = 0;   // over all steps
};

Spread spread_of(const Report& report, Part part);

// "40 steps (10 on each of 4 ranks)": all that the report has.
std::string all_steps(const Report& report);

// "by step: median 5.1 %, ..." or "in 1 of 6 steps: 31 ms once; ..."; empty: nothing to say.
std::string describe(const Spread& spread, const Report& report);

}  // namespace gpuprof::analysis
