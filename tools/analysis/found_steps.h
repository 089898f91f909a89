// SPDX-License-Identifier: Apache-2.0
// Steps of windows that nobody marked: by marks inside (nested_steps.h), else by the order in which
// GPU work was issued, which repeats (formats/core/period/period.h). Thread-safe.
#pragma once

#include <vector>

#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Sets the steps that lie inside a window without any, or inside a bracket. A bracket that holds
// one step, or none that is known, stays one. Those that the order of work surely tells take the
// place of stretches of wall time. `timeline` needs its calls, threads and streams.
void look_inside(Timeline& timeline);

// A program that waits for its device several times an iteration has as many steps where `auto`
// takes each wait for one. They become one step of as many waits if the same GPU work comes back
// after them, and is other work after each of them. Names a step by its first wait's number, over
// their count. `timeline` as above.
void join_waits(Timeline& timeline);

// Each rank numbers the steps that it finds from 0, or as its ranges are: they can be compared if
// all found the same. Else no rank keeps those that it found.
void compare_found_steps(std::vector<Timeline>& timelines);

// A bracket in which no steps were found, beside others in which some were, is no step like these:
// it loses the one that it is. After compare_found_steps.
void leave_out_undivided(std::vector<Timeline>& timelines);

// No figure is to mix iterations and stretches of wall time: where some window keeps these, all
// windows of wall time do. After compare_found_steps.
void keep_found_steps_apart(std::vector<Timeline>& timelines);

}  // namespace gpuprof::analysis
