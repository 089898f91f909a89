// SPDX-License-Identifier: Apache-2.0
// Links to live buffers (`X.gpuprof.ring`) that lie elsewhere, in GPUPROF_SCRATCH, and are not
// there any more, or not on this machine.
#pragma once

#include <string>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

bool is_lost_ring(const std::string& path);

// What `links`, of which there is one at least, have lost, in a line: where the first leads, the
// host of its process, and how many more there are.
Problem describe_lost_rings(const std::vector<std::string>& links);

}  // namespace gpuprof
