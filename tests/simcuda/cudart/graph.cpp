// SPDX-License-Identifier: Apache-2.0
// Executable graphs: made, changed, launched, destroyed. A graph is replayed in capture order on
// the launch stream.
#include <cupti.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

// Nodes of an executable graph are clones with ids of their own, those of graphs within it too.
std::vector<Graph::Node> clone_nodes(const std::vector<Graph::Node>& nodes, uint32_t exec,
                                     size_t& count) {
  std::vector<Graph::Node> out = nodes;
  for (Graph::Node& node : out) {
    node.original = node.id;
    constexpr size_t kMost = 1u << 20;
    node.id = node_id(exec, settings().reversed_node_ids ? kMost - count : count);
    ++count;
    if (node.body == nullptr) continue;
    auto body = std::make_shared<Graph>();
    body->nodes = clone_nodes(node.body->nodes, exec, count);
    node.body = std::move(body);
  }
  return out;
}

void announce_nodes(CuptiSink* sink, cudaGraph_t graph, cudaGraphExec_t handle,
                    const GraphExec& exec, const std::vector<Graph::Node>& nodes) {
  for (const Graph::Node& node : nodes) {
    sink->graph_changed({GraphChange::kNodeCloned, graph, handle, exec.id, node.id, node.original,
                         static_cast<int>(node.type)});
    if (node.body != nullptr) announce_nodes(sink, graph, handle, exec, node.body->nodes);
  }
}

void announce(CuptiSink* sink, cudaGraph_t graph, cudaGraphExec_t handle, const GraphExec& exec) {
  if (sink == nullptr) return;
  sink->graph_changed({GraphChange::kExecStarting, graph});
  announce_nodes(sink, graph, handle, exec, exec.nodes);
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
      exec->graph_records = core.wanted(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
      *out = core.add_graph_exec(exec);
      size_t count = 0;
      exec->nodes = clone_nodes(graph->nodes, exec->id, count);
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

// The node is named as the graph has it from which this one was made.
Graph::Node* find_node(std::vector<Graph::Node>& nodes, uint64_t original) {
  for (Graph::Node& node : nodes) {
    if (node.original == original) return &node;
    Graph::Node* const inside =
        node.body == nullptr ? nullptr : find_node(node.body->nodes, original);
    if (inside != nullptr) return inside;
  }
  return nullptr;
}

cudaError_t set_kernel(const ApiInfo& which, cudaGraphExec_t handle, cudaGraphNode_t original,
                       const cudaKernelNodeParams* params) {
  return run_api(which, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto exec = core.graph_exec(handle);
    if (exec == nullptr || params == nullptr) return cudaErrorInvalidValue;
    call.details.graph = exec->id;
    Graph::Node* const node = find_node(exec->nodes, reinterpret_cast<uint64_t>(original));
    if (node == nullptr || node->type != NodeType::kKernel) return cudaErrorInvalidValue;
    node->work = kernel_work(*params);
    return node->work.info.name[0] ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  });
}

int activity_kind(const GpuOpInfo& info) {
  if (info.kind == GpuOpKind::kKernel) return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (info.kind == GpuOpKind::kMemset) return CUPTI_ACTIVITY_KIND_MEMSET;
  return info.copy_kind == CopyKind::kPtoP ? CUPTI_ACTIVITY_KIND_MEMCPY2
                                           : CUPTI_ACTIVITY_KIND_MEMCPY;
}

bool is_host(const Graph::Node& node) { return node.type == NodeType::kHost; }

// One launch of a graph on its way.
struct Replay {
  Stream& stream;
  const GraphExec& exec;
  uint32_t correlation;
  bool whole;  // CUPTI records graphs as a whole, and no nodes
  GraphRules rules;
  uint64_t earliest;
  OpPtr first, last;
};

bool is_traced(Core& core, const Replay& launch, const GpuOpInfo& info, bool hidden) {
  if (info.kind == GpuOpKind::kMarker || launch.whole || hidden || !launch.rules.nodes)
    return false;
  if (!launch.exec.node_records && !launch.rules.late_nodes) return false;
  const int kind =
      info.recorded_as_kernel ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : activity_kind(info);
  return core.wanted(kind);
}

// `hidden`: within a conditional node, and CUPTI does not see it.
void replay(Core& core, Replay& launch, const std::vector<Graph::Node>& nodes, bool hidden) {
  for (const Graph::Node& node : nodes) {
    if (node.body != nullptr) {
      const bool conditional = node.type == NodeType::kConditional;
      if (conditional) {  // the GPU looks at the condition in any case
        launch.last = core.run(launch.stream, Work{}, launch.correlation, false, launch.earliest);
        if (launch.first == nullptr) launch.first = launch.last;
      }
      for (int i = 0; i < node.repeats; ++i) {
        const bool unseen =
            conditional && (!launch.rules.bodies || (launch.rules.first_iteration_only && i > 0));
        replay(core, launch, node.body->nodes, hidden || unseen);
      }
      continue;
    }
    Work work = node.work;
    work.info.graph_id = launch.exec.id;
    work.info.graph_node_id = node.id;
    work.info.graph_original_id = node.original;
    work.info.recorded_as_kernel = work.info.kind != GpuOpKind::kKernel &&
                                   !launch.exec.node_records &&
                                   launch.rules.late_transfers_as_kernels;
    const bool traced = is_traced(core, launch, work.info, hidden);
    const OpPtr awaited = node.type == NodeType::kEventWait ? node.event->op : nullptr;
    launch.last =
        core.run(launch.stream, work, launch.correlation, traced, launch.earliest, awaited);
    if (node.type == NodeType::kEventRecord) node.event->op = launch.last;
    if (launch.first == nullptr) launch.first = launch.last;
  }
}

}  // namespace

// Runs all nodes, then a summary op, which has the launch's begin and end.
void Core::launch_graph(Stream& stream, GraphExec& exec, uint32_t correlation) {
  const GraphRules rules = sink() ? sink()->graph_rules() : GraphRules{};
  const bool whole = wanted(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  if (whole && !exec.graph_records && rules.late_graph_crash) std::raise(SIGSEGV);
  // "Each launch is ordered behind both any previous work in stream and any previous launches of
  // graphExec." (CUDA runtime API, cudaGraphLaunch)
  if (exec.last != nullptr) run(stream, Work{}, correlation, false, arrival(), exec.last);
  Replay launch{stream, exec, correlation, whole, rules, arrival(), nullptr, nullptr};
  replay(*this, launch, exec.nodes, false);
  if (launch.last == nullptr) return;
  Work summary;
  summary.info.kind = GpuOpKind::kGraph;
  summary.info.graph_id = exec.id;
  summary.info.begins_on_host = is_host(exec.nodes.front());
  summary.info.ends_on_host = is_host(exec.nodes.back());
  summary.begin_of = launch.first;
  const bool traced = whole && (exec.graph_records || rules.late_graph_times);
  exec.last = run(stream, summary, correlation, traced, launch.earliest);
}

namespace {

void hold_launch() {
  static std::atomic<uint64_t> launches{0};
  if (launches.fetch_add(1) + 1 != settings().held_graph_launch) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(settings().held_ms));
}

cudaError_t launch(const StreamApi& which, cudaGraphExec_t handle, cudaStream_t stream_handle) {
  const cudaGraphLaunch_v10000_params params{handle, stream_handle};
  return run_api(which.api, &params, nullptr, [&](ApiCall& call) {
    hold_launch();
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto exec = core.graph_exec(handle);
    const auto stream = core.stream(stream_handle, which.per_thread);
    if (exec == nullptr) return cudaErrorInvalidValue;
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t refused = core.refuse_use(*stream)) return refused;
    call.details.device = stream->device;
    call.details.stream = stream->id;
    call.details.graph = exec->id;
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    core.launch_graph(*stream, *exec, call.correlation());
    return cudaSuccess;
  });
}

constexpr ApiInfo kInstantiate{"cudaGraphInstantiate",
                               CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000};
constexpr ApiInfo kInstantiateFlags{"cudaGraphInstantiateWithFlags",
                                    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithFlags_v11040};
constexpr ApiInfo kInstantiateParams{
    "cudaGraphInstantiateWithParams",
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithParams_v12000};
constexpr ApiInfo kInstantiateParamsPtsz{
    "cudaGraphInstantiateWithParams_ptsz",
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiateWithParams_ptsz_v12000};
constexpr ApiInfo kUpdate{"cudaGraphExecUpdate",
                          CUPTI_RUNTIME_TRACE_CBID_cudaGraphExecUpdate_v10020};
constexpr ApiInfo kSetKernel{"cudaGraphExecKernelNodeSetParams",
                             CUPTI_RUNTIME_TRACE_CBID_cudaGraphExecKernelNodeSetParams_v10010};
constexpr StreamApi kLaunch{{"cudaGraphLaunch", CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000},
                            false};
constexpr StreamApi kLaunchPtsz{
    {"cudaGraphLaunch_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000}, true};
constexpr StreamApi kUpload{{"cudaGraphUpload", CUPTI_RUNTIME_TRACE_CBID_cudaGraphUpload_v10000},
                            false};
constexpr StreamApi kUploadPtsz{
    {"cudaGraphUpload_ptsz", CUPTI_RUNTIME_TRACE_CBID_cudaGraphUpload_ptsz_v10000}, true};
constexpr ApiInfo kExecDestroy{"cudaGraphExecDestroy",
                               CUPTI_RUNTIME_TRACE_CBID_cudaGraphExecDestroy_v10000};

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

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  return instantiate(kInstantiate, out, graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                          unsigned long long) {
  return instantiate(kInstantiateFlags, out, graph);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* out, cudaGraph_t graph,
                                           cudaGraphInstantiateParams*) {
  return instantiate(kInstantiateParams, out, graph);
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* out, cudaGraph_t graph,
                                                cudaGraphInstantiateParams*) {
  return instantiate(kInstantiateParamsPtsz, out, graph);
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
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return set_kernel(kSetKernel, exec, node, params);
}

}  // extern "C"
