// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the simulated runtime. Passive data: the core's lock protects it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/simcuda/core/timeline.h"

namespace gpuprof::simcuda {

// Device work as the program asked for it; becomes an Op, or a graph node under capture.
struct Work {
  GpuOpInfo info;
  uint64_t duration = 0;
  EngineKind engine = EngineKind::kNone;
  std::shared_ptr<GateFactory> gate;
  uint32_t event_id = 0;  // a marker of cudaEventRecord
  uint64_t event_sync_id = 0;
  OpPtr begin_of;  // reported as starting with this one
};

struct Event;

// Values are those of CUgraphNodeType.
enum class NodeType : uint8_t {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kHost = 3,
  kGraph = 4,
  kEventWait = 6,
  kEventRecord = 7,
  kMemAlloc = 10,
  kMemFree = 11,
  kConditional = 13,
};

struct Graph {
  struct Node {
    Work work;
    uint64_t id = 0;
    uint64_t original = 0;  // of an executable graph's node: the node that it is a clone of
    NodeType type = NodeType::kKernel;
    std::shared_ptr<Graph> body;   // of a graph within, or of a condition
    int repeats = 1;               // of the body
    std::shared_ptr<Event> event;  // external: recorded or awaited
  };
  uint32_t id = 0;
  std::vector<Node> nodes;  // in capture order, in which they are replayed
};

struct GraphExec {
  uint32_t id = 0;
  int device = 0;
  std::vector<Graph::Node> nodes;
  OpPtr last;                  // of its newest launch
  bool node_records = false;   // CUPTI recorded kernels when this was instantiated
  bool graph_records = false;  // CUPTI recorded graphs as a whole then
};

struct ThreadState;

struct Capture {
  std::shared_ptr<Graph> graph;
  uint64_t id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  const ThreadState* thread = nullptr;  // that began it
  bool invalid = false;  // until it is ended: CUDA C++ Programming Guide, "Invalidation"
  bool ended = false;
};

// Ids of graphs are small, and a node's has its graph's in the upper half.
constexpr uint64_t node_id(uint32_t graph, size_t index) {
  return static_cast<uint64_t>(graph) << 32 | (index + 1);
}

struct Stream {
  int device = 0;
  uint32_t id = 0;
  uint32_t context_id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  bool blocking = true;  // ordered with the legacy default stream
  OpPtr last;
  std::deque<OpPtr> waiting;  // where SIMCUDA_QUEUE limits them
  std::shared_ptr<Capture> capture;
  bool capture_origin = false;
  uint64_t last_node = 0;  // the newest node captured from this stream
};

// A context of cuCtxCreate. What belongs to it goes with it.
struct Context {
  int device = 0;
  uint32_t id = 0;
  std::shared_ptr<Stream> legacy_stream;
};

struct Event {
  uint32_t id = 0;
  uint32_t context_id = 0;
  unsigned flags = 0;
  int device = 0;
  OpPtr op;
  uint64_t sync_id = 0;
  uint32_t stream_id = 0;
  std::shared_ptr<Capture> capture;  // recorded in a capturing stream
};

// The last work of a destroyed stream.
struct Orphan {
  OpPtr op;
  bool blocking;  // as the stream was
};

struct Device {
  int index = 0;
  uint32_t context_id = 0;  // 0 until first used
  uint32_t next_stream_id = 13;
  std::shared_ptr<Stream> legacy_stream;
  std::vector<std::shared_ptr<Stream>> streams;  // live ones, the legacy stream first
  std::vector<Orphan> orphans;
  std::map<uint32_t, OpPtr> newest_queued;  // by work queue, where SIMCUDA_CONNECTIONS limits them
  CopyEngine h2d;
  CopyEngine d2h;
};

struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t shmem = 0;
  cudaStream_t stream = nullptr;
};

struct ApiInfo;

// A function of the driver is that of the runtime under another name: the next API call of the
// thread is this one.
struct DriverCall {
  const ApiInfo* api = nullptr;
  const void* params = nullptr;
};

// One per thread; never freed, since calls arrive while threads are being torn down.
struct ThreadState {
  int device = 0;                    // of the current context, or where none is:
  int runtime_device = 0;            // as cudaSetDevice chose
  bool has_context = false;          // one is current; the runtime's calls see to that
  std::shared_ptr<Context> context;  // that one, if cuCtxCreate made it; null: the primary one
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  uint64_t next_kernel_ns = 0;
  std::map<int, std::shared_ptr<Stream>> default_streams;
  std::vector<LaunchConfiguration> configurations;
  uint32_t tid = 0;
  DriverCall driver_call;
  std::vector<GraphEvent> created_nodes;  // by the call in progress, for CUPTI
  uint32_t static_runtime_call = 0;  // correlation id of the call of a static runtime in progress
};

ThreadState& thread_state();

}  // namespace gpuprof::simcuda
