// SPDX-License-Identifier: Apache-2.0
// What the chunks of one dump add up to, and the Process that becomes of it once all are there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "formats/dump/events_decoder.h"
#include "formats/dump/lane_filler.h"
#include "formats/dump/nvtx_names.h"
#include "formats/trace/trace.h"

namespace gpuprof {

// Until complete() all times, those in `process` too, are clock units. Not thread-safe.
struct TraceSegment {
  // A lane in any chunk: type, thread, device, context, stream.
  using LaneKey = std::tuple<LaneType, uint32_t, uint32_t, uint32_t, uint32_t>;

  Process process;
  std::map<LaneKey, OpenLane> lanes;
  std::map<uint64_t, uint64_t> boundaries;  // of steps: number -> clock units
  NvtxNames nvtx_names;
  dump::Budget budget;  // the last; empty: there was none

  // A chunk's part of a lane, with the chunk's shapes and stacks. Takes what `in` holds.
  void add_lane(const ShapePool& pool, DecodedLane& in,
                const std::shared_ptr<const std::vector<ShapeIndex>>& shapes,
                const std::shared_ptr<const std::vector<StackIndex>>& stacks);
  void add_counters(const dump::Counters& counters);
  void add_workers(const dump::Workers& workers);

  // All chunks are there: makes events, steps, tracks and joins of them, on the trace's time line.
  void complete(Trace& trace);

 private:
  // On the trace's time line; see trace.h.
  int64_t time_of_ticks(uint64_t ticks) const {
    return trace_time(process.clock.monotonic_ns(ticks), process.realtime_offset);
  }
  int64_t time_of_units(uint64_t units) const { return time_of_ticks(process.clock.ticks(units)); }
  void fix_clock();
  void fix_window();
  void make_events(Trace& trace);
  void convert_times();
  void draw_workers();
  void draw_threads();
  void fix_steps();
  void fix_summary();
  void fix_budget();
};

}  // namespace gpuprof
