// SPDX-License-Identifier: Apache-2.0
// Windows that go by the clock beside others of the same process: `auto` had fallen back to `time`
// before the program's own steps came. No figure of a step is to mix the two.
#pragma once

#include <cstddef>

#include "formats/trace/trace.h"

namespace gpuprof::analysis {

// Takes them out of the trace, and the same windows of workers that load data for that process;
// returns how many there were, without those.
size_t leave_out_clock_windows(Trace& trace);
// Likewise windows of the clock in which nothing was handed to a GPU, of processes without a rank,
// if another process has steps of its own: a launcher or a server's front that used the GPU once.
size_t leave_out_idle_windows(Trace& trace);
// The same for windows whose steps `auto` inferred (modules, collectives, graphs, synchronizations)
// beside windows of the program's own marks: batches of a validation before the training. Also
// those of synchronizations beside windows of collectives or graphs: what came before the steps.
size_t leave_out_inferred_windows(Trace& trace);
// Early windows of processes that came to the window of their schedule: of those that were killed
// meanwhile. Takes them out; returns how many there were.
size_t leave_out_early_windows(Trace& trace);

}  // namespace gpuprof::analysis
