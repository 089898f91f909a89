// SPDX-License-Identifier: Apache-2.0
// Causes of losses that count the same records.
#pragma once

#include <cstdint>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Records that CUPTI dropped (cupti_dropped), if the window's launches, copies and sets tell all
// that it lacks: when it ends, those without a record are counted as unfinished_gpu. What was
// dropped beyond them is of before or after the window, or of no work. Else 0.
uint64_t dropped_and_known(const Timeline& timeline);

}  // namespace gpuprof::analysis
