// SPDX-License-Identifier: Apache-2.0
// The memory that is allocated when steps begin: from the memory log's list, and what the events
// before changed.
#pragma once

#include <vector>

#include "formats/trace/trace.h"
#include "formats/views/step_places.h"

namespace gpuprof {

// `stretches`, in order, have their begins, which are those of steps of `places`; the rest is
// filled in. Returns the first one's list: of calls and, where a framework's allocator told
// addresses, of its blocks; in order of address. What the memory log did not list, and no event
// allocated, is not known and not in it: without the log it is a part.
LiveMemory find_memory_before(const Trace& trace, const Process& process, const StepPlaces& places,
                              std::vector<Stretch>& stretches);

}  // namespace gpuprof
