// SPDX-License-Identifier: Apache-2.0
// A folder may hold traces of other tools from several runs of a program. tensorboard_trace_handler
// names them by pid and time, and without torch.distributed they say no rank.
#pragma once

#include "formats/trace/trace.h"

namespace gpuprof {

// Of processes without a rank, in outside traces, one that begins after all others have ended, on
// their host and with their step numbers, is of the next run. Ranks that nobody has numbered do
// their steps at the same time; windows of a process have its pid. Keeps the newest whole run, if
// `choose`; else all. A note says which runs there are.
void choose_traces(Trace& trace, bool choose);

}  // namespace gpuprof
