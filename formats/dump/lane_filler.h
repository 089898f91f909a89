// SPDX-License-Identifier: Apache-2.0
// From the parts that chunks hold of each lane to the events of a process: in order, in
// nanoseconds, without ever holding them twice.
#pragma once

#include <vector>

#include "formats/dump/events_decoder.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// A lane under construction.
struct OpenLane {
  Lane lane{};
  std::vector<LanePart> parts;  // in the file's order
  size_t count = 0;
};

// Appends the lanes, in their order, to process.lanes and makes process.events of them, in
// parallel; parts are freed on the way. process.clock and realtime_offset are known. Returns the
// end of the last event; `otherwise` where there is none later.
int64_t fill_events(const Trace& trace, std::vector<OpenLane>& lanes, Process& process,
                    int64_t otherwise);

// A time on the trace's time line (trace.h). Times stay in [0, 2^62], whatever a file claims.
int64_t trace_time(int64_t monotonic, int64_t realtime_offset);

}  // namespace gpuprof
