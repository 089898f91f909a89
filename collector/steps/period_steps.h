// SPDX-License-Identifier: Apache-2.0
// The step source `period`: steps found from the order of launches alone
// (formats/core/period/period.h). Launches are noted; the drain thread looks among them for what
// repeats; from then on the launch that comes once in each step tells where one begins. Nothing is
// said where nothing repeats.
#pragma once

#include <cstdint>

namespace gpuprof {

// Forgets everything. Before the first launch, and again in a child after fork.
void period_begin();

// A launch, by its function or graph. Whether a step begins with it. Any thread, without a lock; of
// launches at the same moment one may be missed.
bool period_launch(uint64_t subject);

// What was found.
struct FoundSteps {
  double confidence;  // 0 to 1
  double launches;    // in a step
};
// Looks for a period where none is known, or where the known one has ended; mostly it is not yet
// time. True: one was found, steps begin from now on. On the drain thread.
bool period_look(uint64_t now_ns, FoundSteps& out);
// How often it has looked since period_begin().
uint32_t period_looks();

}  // namespace gpuprof
