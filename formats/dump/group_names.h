// SPDX-License-Identifier: Apache-2.0
// Which process groups the collectives of a dump are of, by what its Summary says of communicators.
#pragma once

#include <vector>

#include "formats/dump/lane_filler.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// Gives the shapes of collectives in `lanes` their group. A handle that stood for communicators
// with different names has none.
void name_groups(Trace& trace, const dump::Summary& summary, std::vector<OpenLane>& lanes);

}  // namespace gpuprof
