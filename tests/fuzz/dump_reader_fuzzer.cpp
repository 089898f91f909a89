// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a dump file: read into a trace, problems and all. The same bytes also go in as
// the body of each kind of chunk in a sound envelope, since a random check sum is never right.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/core/chunk.h"
#include "formats/dump_reader.h"
#include "formats/slices.h"
#include "formats/trace_builder.h"

namespace {

using namespace gpuprof;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Trace& trace) {
  for (const Process& process : trace.processes) {
    size_t count = 0;
    for (const Lane& lane : process.lanes) {
      const auto events = process.lane_events(lane);
      count += events.size();
      for (size_t i = 0; i < events.size(); ++i) {
        require(events[i].begin <= events[i].end);
        require(i == 0 || events[i - 1].begin <= events[i].begin);
        require(number(events[i].shape) < trace.shapes.size());
        require(events[i].extra < process.extras.size());
        const EventIndex partner = events[i].partner;
        require(partner == EventIndex::none || number(partner) < process.events.size());
      }
    }
    require(count == process.events.size());
    memory_curves(trace, process);
    process.window_steps();
  }
  for (const Problem& problem : trace.problems) require(!problem.text().empty());
}

void load(std::string_view bytes) {
  Trace trace;
  TraceBuilder builder(trace, "input", bytes.size());
  const ReadResult result = read_chunks(bytes, "input", {}, builder, trace.problems);
  builder.finish();
  require(result.chunks > 0 || bytes.empty() || !trace.problems.empty() || trace.processes.empty());
  check(trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  load({reinterpret_cast<const char*>(data), size});
  ByteBuffer wrapped;
  for (const ChunkKind kind :
       {ChunkKind::header, ChunkKind::events, ChunkKind::steps, ChunkKind::summary}) {
    if (!append_chunk(wrapped, kind, data, size, 0)) return 0;
  }
  load({reinterpret_cast<const char*>(wrapped.data()), wrapped.size()});
  return 0;
}
