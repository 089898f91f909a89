// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a dump file: read into a trace, problems and all. The same bytes also go in as
// the body of each kind of chunk in a sound envelope, since a random check sum is never right.
#include <cstddef>
#include <cstdint>

#include "formats/core/chunk.h"
#include "formats/dump/dump_reader.h"
#include "formats/dump/trace_builder.h"
#include "tests/fuzz/trace_check.h"

namespace {

using namespace gpuprof;
using test::require;

void load(std::string_view bytes) {
  Trace trace;
  TraceBuilder builder(trace, "input", bytes.size());
  const ReadResult result = read_chunks(bytes, "input", {}, builder, trace.problems);
  builder.finish();
  require(result.chunks > 0 || bytes.empty() || !trace.problems.empty() || trace.processes.empty());
  test::check_trace(trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  load({reinterpret_cast<const char*>(data), size});
  ByteBuffer wrapped;
  for (auto kind = static_cast<uint32_t>(ChunkKind::header);
       kind <= static_cast<uint32_t>(ChunkKind::cuda); ++kind) {
    // The summary comes last: what follows one is of another window.
    if (static_cast<ChunkKind>(kind) == ChunkKind::summary) continue;
    if (!append_chunk(wrapped, static_cast<ChunkKind>(kind), data, size, 0)) return 0;
  }
  if (!append_chunk(wrapped, ChunkKind::summary, data, size, 0)) return 0;
  load({reinterpret_cast<const char*>(wrapped.data()), wrapped.size()});
  return 0;
}
