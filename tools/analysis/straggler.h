// SPDX-License-Identifier: Apache-2.0
// The cause `straggler` in figures: which ranks it is of, and what they cost.
#pragma once

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// Of its factors the largest; 1: it is no slower than others, and the replay takes nothing from it.
double slowness_of(const RankSpeed& speed);

// Per cent of step time, the mean over ranks, for which others wait for ranks that are slower.
double awaited_pct(const Report& report);

}  // namespace gpuprof::analysis
