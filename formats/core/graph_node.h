// SPDX-License-Identifier: Apache-2.0
// A dump's Graphs message: nodes of executable CUDA graphs; written by the process, and by the
// tools from the ring that a killed one left.
#pragma once

#include <string_view>

#include "formats/core/python_codes.h"
#include "formats/core/record.h"
#include "formats/core/ring_file.h"
#include "formats/core/wire.h"

namespace gpuprof {

// What CUPTI's record of a replayed node has to tell which captured call the node is of.
struct ReplayedWork {
  Kind kind = Kind::none;  // of that record
  std::string_view name;   // kernels: mangled, "": not known
  Dim3 grid{}, block{};    // kernels
  uint64_t bytes = 0;      // copies and sets
};

inline constexpr uint32_t kReplayedGraphField = 4;

namespace graph_node_detail {

// The fields of a GraphNode. False: no memory.
inline bool write_fields(WireWriter& wire, const GraphNodeRow& row, std::string_view api,
                         std::string_view frames, uint32_t clock_shift, PythonCodes& codes) {
  wire.uint(1, row.id);
  wire.text(2, api);
  wire.uint(3, row.begin_ticks >> clock_shift);
  wire.uint(4, row.thread_id);
  wire.uint(5, row.stream);
  wire.uint(6, row.capture);
  if (frames.empty()) return true;
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
  return written;
}

}  // namespace graph_node_detail

// `frames`: of the captured call, as the ring's table has them. False: no memory.
inline bool write_graph_node(WireWriter& wire, const GraphNodeRow& row, std::string_view api,
                             std::string_view frames, uint32_t clock_shift, PythonCodes& codes) {
  const size_t mark = wire.open(1);
  const bool written = graph_node_detail::write_fields(wire, row, api, frames, clock_shift, codes);
  wire.close(mark);
  return written;
}

// The same as a node of an open ReplayedGraph. Without an API the call is not known.
inline bool write_replayed_call(WireWriter& wire, const GraphNodeRow& row, std::string_view api,
                                std::string_view frames, uint32_t clock_shift, PythonCodes& codes,
                                const ReplayedWork& call) {
  const size_t mark = wire.open(4);
  wire.uint(1, static_cast<uint32_t>(call.kind));
  wire.text(2, call.name);
  for (const uint32_t size :
       {call.grid.x, call.grid.y, call.grid.z, call.block.x, call.block.y, call.block.z}) {
    if (call.kind == Kind::gpu_kernel) wire.uint_always(3, size);
  }
  wire.uint(4, call.bytes);
  const size_t node = wire.open(5);
  const bool written = graph_node_detail::write_fields(wire, row, api, frames, clock_shift, codes);
  wire.close(node);
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
