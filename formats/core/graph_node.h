// SPDX-License-Identifier: Apache-2.0
// A dump's Graphs message: nodes of executable CUDA graphs; written by the process, and by the
// tools from the ring that a killed one left.
#pragma once

#include <string_view>

#include "formats/core/python_codes.h"
#include "formats/core/ring_file.h"
#include "formats/core/wire.h"

namespace gpuprof {

// `frames`: of the captured call, as the ring's table has them. False: no memory.
inline bool write_graph_node(WireWriter& wire, const GraphNodeRow& row, std::string_view api,
                             std::string_view frames, uint32_t clock_shift, PythonCodes& codes) {
  const size_t mark = wire.open(1);
  wire.uint(1, row.id);
  wire.text(2, api);
  wire.uint(3, row.begin_ticks >> clock_shift);
  wire.uint(4, row.thread_id);
  wire.uint(5, row.stream);
  wire.uint(6, row.capture);
  if (frames.empty()) {
    wire.close(mark);
    return true;
  }
  const size_t packed = wire.open(7);
  uint64_t last = 0;
  const bool written = each_frame(frames, [&](uint64_t frame) {
    if (!codes.number(frame)) return false;
    uint8_t bytes[kMaxVarintBytes];
    const uint8_t* const end = put_varint(bytes, zigzag(static_cast<int64_t>(frame - last)));
    wire.raw(bytes, static_cast<size_t>(end - bytes));
    last = frame;
    return true;
  });
  wire.close(packed);
  wire.close(mark);
  return written;
}

// After all nodes. `string` gives the text of a StringId.
template <typename StringOf>
void write_graph_codes(WireWriter& wire, const PythonCodes& codes, const StringOf& string) {
  codes.each(string, [&](const PythonCodeName& code) {
    wire.bytes(2, string(code.function));
    wire.bytes(3, string(code.file));
    return true;
  });
}

}  // namespace gpuprof
