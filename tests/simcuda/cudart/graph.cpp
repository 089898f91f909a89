// SPDX-License-Identifier: Apache-2.0
// Stream capture and CUDA graphs. A graph is replayed in capture order on the launch stream.
#include <cupti.h>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

cudaError_t begin_capture(const StreamApi& which, cudaStream_t handle, cudaStreamCaptureMode mode) {
  return run_api(which.api, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.stream = stream->id;
    if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->graph = core.create_graph();
    capture->id = core.next_capture_id();
    capture->mode = mode;
    stream->capture = std::move(capture);
    stream->capture_origin = true;
    stream->last_node = 0;
    return cudaSuccess;
  });
}

cudaError_t end_capture(const StreamApi& which, cudaStream_t handle, cudaGraph_t* out) {
  return run_api(which.api, [&](ApiCall& call) {
    if (out == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.stream = stream->id;
    if (stream->capture == nullptr) return cudaErrorIllegalState;
    if (!stream->capture_origin) return cudaErrorStreamCaptureUnmatched;
    const auto capture = stream->capture;
    for (const auto& other : core.device(stream->device).streams) {
      if (other->capture == capture) other->capture = nullptr;
    }
    stream->capture_origin = false;
    call.details.graph = capture->graph->id;
    *out = reinterpret_cast<cudaGraph_t>(capture->graph.get());
    return cudaSuccess;
  });
}

cudaError_t capture_status(const StreamApi& which, cudaStream_t handle,
                           cudaStreamCaptureStatus* status, unsigned long long* id) {
  return run_api(which.api, [&](ApiCall&) {
    if (status == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto stream = core.stream(handle, which.per_thread);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    *status =
        stream->capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id != nullptr && stream->capture != nullptr) *id = stream->capture->id;
    return cudaSuccess;
  });
}

// Nodes of an executable graph are clones with ids of their own.
void clone_nodes(const Graph& graph, GraphExec& exec) {
  exec.nodes = graph.nodes;
  for (size_t i = 0; i < exec.nodes.size(); ++i) {
    exec.nodes[i].original = graph.nodes[i].id;
    exec.nodes[i].id = node_id(exec.id, i);
  }
}

void announce(CuptiSink* sink, cudaGraph_t graph, cudaGraphExec_t handle, const GraphExec& exec) {
  if (sink == nullptr) return;
  for (const Graph::Node& node : exec.nodes) {
    sink->graph_changed({GraphChange::kNodeCloned, graph, handle, exec.id, node.id, node.original});
  }
  sink->graph_changed({GraphChange::kExecCreated, graph, handle, exec.id});
}

cudaError_t instantiate(const ApiInfo& which, cudaGraphExec_t* out, cudaGraph_t handle) {
  return run_api(which, [&](ApiCall& call) {
    if (out == nullptr) return cudaErrorInvalidValue;
    Core& core = Core::instance();
    auto exec = std::make_shared<GraphExec>();
    {
      const Core::Lock held = core.lock();
      const auto graph = core.graph(handle);
      if (graph == nullptr) return cudaErrorInvalidValue;
      exec->device = thread_state().device;
      exec->node_records = core.wanted(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      *out = core.add_graph_exec(exec);
      clone_nodes(*graph, *exec);
    }
    call.details.graph = exec->id;
    announce(core.sink(), handle, *out, *exec);
    return cudaSuccess;
  });
}

// Gives the executable graph the nodes of another graph of the same shape; ids stay.
cudaError_t update(const ApiInfo& which, cudaGraphExec_t handle, cudaGraph_t graph_handle,
                   cudaGraphExecUpdateResultInfo* info) {
  return run_api(which, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto exec = core.graph_exec(handle);
    const auto graph = core.graph(graph_handle);
    if (exec == nullptr || graph == nullptr || info == nullptr) return cudaErrorInvalidValue;
    call.details.graph = exec->id;
    *info = {};
    if (exec->nodes.size() != graph->nodes.size()) {
      info->result = cudaGraphExecUpdateErrorTopologyChanged;
      return cudaErrorGraphExecUpdateFailure;
    }
    for (size_t i = 0; i < exec->nodes.size(); ++i) exec->nodes[i].work = graph->nodes[i].work;
    info->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
  });
}

int activity_kind(const GpuOpInfo& info) {
  if (info.kind == GpuOpKind::kKernel) return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (info.kind == GpuOpKind::kMemset) return CUPTI_ACTIVITY_KIND_MEMSET;
  return info.copy_kind == CopyKind::kPtoP ? CUPTI_ACTIVITY_KIND_MEMCPY2
                                           : CUPTI_ACTIVITY_KIND_MEMCPY;
}

}  // namespace

// Runs all nodes, then a summary op, which has the launch's begin and end.
void Core::launch_graph(Stream& stream, const GraphExec& exec, uint32_t correlation) {
  const bool summary = wanted(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  const uint64_t earliest = arrival();
  OpPtr first;
  OpPtr last;
  for (const Graph::Node& node : exec.nodes) {
    Work work = node.work;
    work.info.graph_id = exec.id;
    work.info.graph_node_id = node.id;
    work.info.graph_original_id = node.original;
    const bool traced = exec.node_records && !summary && wanted(activity_kind(work.info));
    last = run(stream, work, correlation, traced, earliest);
    if (first == nullptr) first = last;
  }
  if (last == nullptr) return;
  Work whole;
  whole.info.kind = GpuOpKind::kGraph;
  whole.info.graph_id = exec.id;
  whole.begin_of = first;
  run(stream, whole, correlation, summary, earliest);
}

namespace {

cudaError_t launch(const StreamApi& which, cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return run_api(which.api, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto exec = core.graph_exec(handle);
    const auto stream = core.stream(stream_handle, which.per_thread);
    if (exec == nullptr) return cudaErrorInvalidValue;
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    call.details.graph = exec->id;
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    core.launch_graph(*stream, *exec, call.correlation());
    return cudaSuccess;
  });
}

constexpr StreamApi kBegin{
    {"cudaStreamBeginCapture", CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_v10000}, false};
constexpr StreamApi kBeginPtsz{
    {"cudaStreamBeginCapture_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamBeginCapture_ptsz_v10000},
    true};
constexpr StreamApi kEnd{
    {"cudaStreamEndCapture", CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_v10000}, false};
constexpr StreamApi kEndPtsz{
    {"cudaStreamEndCapture_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamEndCapture_ptsz_v10000}, true};
constexpr StreamApi kIsCapturing{
    {"cudaStreamIsCapturing", CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000, true}, false};
constexpr StreamApi kIsCapturingPtsz{
    {"cudaStreamIsCapturing_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_ptsz_v10000,
     true},
    true};
constexpr StreamApi kCaptureInfo{
    {"cudaStreamGetCaptureInfo", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_v12030, true},
    false};
constexpr StreamApi kCaptureInfoPtsz{
    {"cudaStreamGetCaptureInfo_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_ptsz_v12030,
     true},
    true};
constexpr ApiInfo kInstantiate{"cudaGraphInstantiate",
                               CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000};
constexpr ApiInfo kInstantiateFlags{"cudaGraphInstantiateWithFlags",
                                    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithFlags_v11040};
constexpr ApiInfo kUpdate{"cudaGraphExecUpdate",
                          CUPTI_RUNTIME_TRACE_CBID_cudaGraphExecUpdate_v10020};
constexpr StreamApi kLaunch{{"cudaGraphLaunch", CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000},
                            false};
constexpr StreamApi kLaunchPtsz{
    {"cudaGraphLaunch_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000}, true};
constexpr StreamApi kUpload{{"cudaGraphUpload", CUPTI_RUNTIME_TRACE_CBID_cudaGraphUpload_v10000},
                            false};
constexpr StreamApi kUploadPtsz{
    {"cudaGraphUpload_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaGraphUpload_ptsz_v10000}, true};
constexpr ApiInfo kDestroy{"cudaGraphDestroy", CUPTI_RUNTIME_TRACE_CBID_cudaGraphDestroy_v10000};
constexpr ApiInfo kExecDestroy{"cudaGraphExecDestroy",
                               CUPTI_RUNTIME_TRACE_CBID_cudaGraphExecDestroy_v10000};
constexpr ApiInfo kGetNodes{"cudaGraphGetNodes", CUPTI_RUNTIME_TRACE_CBID_cudaGraphGetNodes_v10000,
                            true};

cudaError_t upload(const StreamApi& which, cudaGraphExec_t handle) {
  return run_api(which.api, [&](ApiCall&) {
    const Core::Lock held = Core::instance().lock();
    return Core::instance().graph_exec(handle) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture(kBegin, stream, mode);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_capture(kBeginPtsz, stream, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return end_capture(kEnd, stream, graph);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return end_capture(kEndPtsz, stream, graph);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return capture_status(kIsCapturing, stream, status, nullptr);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return capture_status(kIsCapturingPtsz, stream, status, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  return capture_status(kCaptureInfo, stream, status, id);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t*,
                                          const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                          size_t*) {
  return capture_status(kCaptureInfoPtsz, stream, status, id);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return instantiate(kInstantiate, out, graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                          unsigned long long) {
  return instantiate(kInstantiateFlags, out, graph);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return launch(kLaunch, exec, stream);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return launch(kLaunchPtsz, exec, stream);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) { return upload(kUpload, exec); }
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t) {
  return upload(kUploadPtsz, exec);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return run_api(kDestroy, [&](ApiCall&) {
    const Core::Lock held = Core::instance().lock();
    return Core::instance().destroy_graph(graph) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return run_api(kExecDestroy, [&](ApiCall&) {
    Core& core = Core::instance();
    if (CuptiSink* const sink = core.sink()) {
      sink->graph_changed({GraphChange::kExecDestroyed, nullptr, exec});
    }
    const Core::Lock held = core.lock();
    return core.destroy_graph_exec(exec) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return update(kUpdate, exec, graph, info);
}
// Gives the number of nodes, and for each an opaque handle, its id.
cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return run_api(kGetNodes, [&](ApiCall&) {
    if (count == nullptr) return cudaErrorInvalidValue;
    const Core::Lock held = Core::instance().lock();
    const auto graph = Core::instance().graph(handle);
    if (graph == nullptr) return cudaErrorInvalidValue;
    for (size_t i = 0; nodes != nullptr && i < *count && i < graph->nodes.size(); ++i) {
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(graph->nodes[i].id);
    }
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

}  // extern "C"
