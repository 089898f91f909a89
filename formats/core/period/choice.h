// SPDX-License-Identifier: Apache-2.0
// Which of the distances at which launches come back is a step. Not thread-safe; memory comes from
// mmap.
#pragma once

#include "formats/core/period/levels.h"

namespace gpuprof {

// `kernels`: as the program numbers them, those that `levels` are of. `anchors`, if wanted: all
// that come as often as the steps, but for one at either end. False: no memory.
bool choose_period(const PeriodLevels& levels, const uint32_t* kernels, Period& out,
                   PodVector<StepAnchor>* anchors = nullptr);

}  // namespace gpuprof
