// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: which captured call made each node, and which records of nodes a launch is to have.
#pragma once

#include <cstdint>

#include "formats/core/byte_buffer.h"
#include "formats/core/record.h"

namespace gpuprof {

// Told by the hooks of cudaStreamBeginCapture and cudaStreamEndCapture when these have succeeded.
// Between them the hooks of calls that can make a node look whether they did. Any thread.
void capture_began();
void capture_ended();
bool any_capture();
// Whether what is launched on this stream becomes part of a graph now. `per_thread` as below. On
// the calling thread.
bool is_captured(uint64_t stream, bool per_thread);

// Of a launch, copy, set or memory call: the stream as the program passed it.
uint64_t stream_of(const Record& record);
// Likewise what the call returned.
int32_t result_of(const Record& record);
// Whether a null stream stands for the thread's own in calls of this row (_ptsz, _ptds).
bool has_own_stream(ApiId api);

// A launch, copy, set or memory call has returned while something was being captured. If its stream
// was, flags the record as captured (it started no work) and remembers the node. `per_thread`: a
// null stream stands for the thread's own; `stack` is the call's, 0: none. On the calling thread,
// in a blocked scope.
void note_captured(Record& record, bool per_thread, StringId stack);

// The same for calls that no hook sees, from CUPTI's callbacks: it tells of a node between the
// entry and the exit of the call that makes it. On the calling thread.
void forget_created_nodes();                             // at the entry
void note_created_node(uint64_t node, uint64_t graph);   // handles
void note_created_call(Record& record, StringId stack);  // at the exit

// A call that made a node of a graph.
struct CapturedCall {
  Record record;
  uint64_t stream;   // as the program passed it
  uint64_t capture;  // the driver's id of the capture
  uint32_t thread;
  StringId stack;  // 0: none
  Kind node_kind;  // of the record that CUPTI makes of the node; none: not looked at
};
// The newest that made a node of this handle. False: none that was seen.
bool captured_call_of(uint64_t node, CapturedCall& out);

// What kinds of nodes an executable graph consists of.
struct GraphContent {
  uint32_t nodes;
  uint32_t timed;         // kernels, copies and sets: CUPTI has records of them
  uint32_t conditionals;  // what runs inside is decided on the GPU
};

// From CUPTI's resource callbacks, on the thread that instantiates or destroys a graph.
void graph_node_cloned(uint64_t original_handle, uint64_t node_id);  // into an executable graph
void graph_node_copied(uint64_t original_handle, uint64_t handle);   // into another graph
void graph_exec_created(uint64_t exec, const GraphContent& content);
void graph_exec_destroyed(uint64_t exec);

// Whether any was captured or instantiated so far, as far as we saw.
bool graphs_are_known();

// What CUPTI tells of a launch of this graph node by node.
enum class NodeRecords : uint8_t {
  nothing,    // there is nothing to record
  uncertain,  // of conditional nodes: perhaps
  likely,     // it was instantiated while CUPTI was off
  some
};
// `nodes`: how many records that are, where it is known, else 0.
NodeRecords node_records_of(uint64_t exec, uint32_t& nodes);

// The nodes from number `from` on, as the body of a dump's graphs chunk. Returns the number after
// the last one; `from`: none, or no memory.
size_t encode_graph_nodes(ByteBuffer& out, uint32_t clock_shift, size_t from);

}  // namespace gpuprof
