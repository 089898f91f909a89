// SPDX-License-Identifier: Apache-2.0
// The dictionary of an Events message to shapes of the trace.
#pragma once

#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// shapes[i] is what Events.shape(i) became. False when it names strings that are not there.
bool decode_shapes(const dump::Events& events, Trace& trace, std::vector<ShapeIndex>& shapes);

}  // namespace gpuprof
