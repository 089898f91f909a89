// SPDX-License-Identifier: Apache-2.0
// How long `auto` waits for steps before it goes by the clock: 30 s since it began to look, or
// since something last said that steps are near (StepTracker::last_sign). A program that gives the
// GPU nothing to do meanwhile is loading, compiling, or waits for requests: that time does not
// count. To see it, hooks of launches, copies and sets are switched on for the last seconds of the
// wait. 300 s at most, for work that no hook sees. Under step_lock, on the drain thread.
#pragma once

#include <cstdint>

namespace gpuprof {

// While no source is chosen, at each look.
bool waited_in_vain(uint64_t ticks);
// A source is chosen: hooks need not tell of work.
void stop_watching();

}  // namespace gpuprof
