// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for each other though none is slow throughout: no cause has that time, since
// nobody's mean would make steps shorter.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "tools/analysis/report.h"

namespace gpuprof::analysis {

// What all ranks wait for others in a step, us, by window and step; a step without waits may lack.
using WaitsOfSteps = std::map<std::pair<uint32_t, uint64_t>, double>;

// Whether the same rank comes last in most collectives.
bool one_is_mostly_last(const Report& report);

// Adds the finding, unless the verdict's straggler has that time. `waited_pct`: of step time,
// exposed.
void add_rank_jitter(double waited_pct, const WaitsOfSteps& waits, Report& report);

}  // namespace gpuprof::analysis
