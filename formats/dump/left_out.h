// SPDX-License-Identifier: Apache-2.0
// A window of which the oldest events had to go (max_mb) begins later than its dump: some events of
// before are still there.
#pragma once

#include <vector>

#include "formats/dump/lane_filler.h"

namespace gpuprof {

// Leaves out what a window that begins at `begin` does not hold: events of threads that begin
// before, work of GPUs that ends before. Times here and in `process` are clock units still.
void leave_out_earlier(uint64_t begin, std::vector<OpenLane>& lanes, Process& process);

}  // namespace gpuprof
