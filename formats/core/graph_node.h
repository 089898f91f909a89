// SPDX-License-Identifier: Apache-2.0
// One node of an executable CUDA graph as field 1 of a dump's Graphs message; written by the
// process, and by the tools from the ring that a killed one left.
#pragma once

#include <cstring>
#include <string_view>

#include "formats/core/ring_file.h"
#include "formats/core/wire.h"

namespace gpuprof {

// `frames`: return addresses of 8 bytes, innermost first, as the ring's table has them. Frames of
// Python among them are left out: what they refer to has no place in this message.
inline void write_graph_node(WireWriter& wire, const GraphNodeRow& row, std::string_view api,
                             std::string_view frames, uint32_t clock_shift) {
  const size_t mark = wire.open(1);
  wire.uint(1, row.id);
  wire.text(2, api);
  wire.uint(3, row.begin_ticks >> clock_shift);
  wire.uint(4, row.thread_id);
  wire.uint(5, row.stream);
  wire.uint(6, row.capture);
  if (frames.size() >= sizeof(uint64_t)) {
    const size_t packed = wire.open(7);
    uint64_t last = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= frames.size(); at += sizeof(uint64_t)) {
      uint64_t address;
      std::memcpy(&address, frames.data() + at, sizeof address);
      if (address & kPythonFrame) continue;
      uint8_t bytes[kMaxVarintBytes];
      const uint8_t* const end = put_varint(bytes, zigzag(static_cast<int64_t>(address - last)));
      wire.raw(bytes, static_cast<size_t>(end - bytes));
      last = address;
    }
    wire.close(packed);
  }
  wire.close(mark);
}

}  // namespace gpuprof
