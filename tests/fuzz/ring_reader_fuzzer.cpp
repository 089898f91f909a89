// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the ring of a killed process. The corpus holds heads with small tables; chunks
// are 64 KiB, so inputs are padded with zeros to hold a few.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/dump/ring_reader.h"
#include "formats/dump/trace_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpuprof;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size > 0) bytes.resize(std::max<size_t>(size, 160 * 1024));
  std::vector<Problem> problems;
  RingReader reader(bytes, "input", problems);
  if (!reader.ok()) return 0;
  const RingInfo info = reader.info();
  for (const uint32_t window : {info.window, info.window + 1}) {
    ByteBuffer chunks;
    reader.recover({window, true}, {}, chunks);
    Trace trace;
    TraceBuilder builder(trace, "input", bytes.size());
    builder.mark_recovered(0);
    read_chunks({reinterpret_cast<const char*>(chunks.data()), chunks.size()}, "input", {}, builder,
                trace.problems);
    builder.finish();
  }
  return 0;
}
