// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for each other though none is slow throughout: no cause has that time, since
// nobody's mean would make steps shorter.
#pragma once

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// Whether the same rank comes last in most collectives.
bool one_is_mostly_last(const Report& report);

// Adds the finding, unless the verdict's straggler has that time. `waited_pct`: of step time,
// exposed.
void add_rank_jitter(double waited_pct, Report& report);

}  // namespace gpuprof::analysis
