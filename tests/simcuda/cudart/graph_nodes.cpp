// SPDX-License-Identifier: Apache-2.0
// Graphs put together by hand: kernels, graphs within graphs, conditions. All other kinds of nodes
// come from captures.
#include <cupti.h>

#include "tests/simcuda/cudart/entry_points.h"

namespace gpuprof::simcuda {
namespace {

constexpr ApiInfo kCreate{"cudaGraphCreate", CUPTI_RUNTIME_TRACE_CBID_cudaGraphCreate_v10000};
constexpr ApiInfo kDestroy{"cudaGraphDestroy", CUPTI_RUNTIME_TRACE_CBID_cudaGraphDestroy_v10000};
constexpr ApiInfo kClone{"cudaGraphClone", CUPTI_RUNTIME_TRACE_CBID_cudaGraphClone_v10000};
constexpr ApiInfo kGetNodes{"cudaGraphGetNodes", CUPTI_RUNTIME_TRACE_CBID_cudaGraphGetNodes_v10000,
                            true};
constexpr ApiInfo kDependencies{"cudaGraphNodeGetDependencies",
                                CUPTI_RUNTIME_TRACE_CBID_cudaGraphNodeGetDependencies_v12030, true};
constexpr ApiInfo kDotPrint{"cudaGraphDebugDotPrint",
                            CUPTI_RUNTIME_TRACE_CBID_cudaGraphDebugDotPrint_v11030, true};
constexpr ApiInfo kAddKernel{"cudaGraphAddKernelNode",
                             CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddKernelNode_v10000};
constexpr ApiInfo kAddChild{"cudaGraphAddChildGraphNode",
                            CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddChildGraphNode_v10000};
constexpr ApiInfo kAddNode{"cudaGraphAddNode", CUPTI_RUNTIME_TRACE_CBID_cudaGraphAddNode_v12030};
constexpr ApiInfo kHandle{"cudaGraphConditionalHandleCreate",
                          CUPTI_RUNTIME_TRACE_CBID_cudaGraphConditionalHandleCreate_v12030};

// Adds a node to the graph; `make` fills it in under the core's lock.
template <typename Make>
cudaError_t add(const ApiInfo& which, cudaGraphNode_t* out, cudaGraph_t handle, Make&& make) {
  return run_api(which, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto graph = core.graph(handle);
    if (graph == nullptr || out == nullptr) return cudaErrorInvalidValue;
    call.details.graph = graph->id;
    Graph::Node node;
    node.id = node_id(graph->id, graph->nodes.size());
    if (const cudaError_t error = make(core, node); error != cudaSuccess) return error;
    *out = reinterpret_cast<cudaGraphNode_t>(node.id);
    graph->nodes.push_back(std::move(node));
    return cudaSuccess;
  });
}

// Its nodes have handles of their own, of which CUPTI tells (CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED).
std::shared_ptr<Graph> clone(Core& core, const Graph& graph) {
  const auto out = core.create_graph();
  for (const Graph::Node& node : graph.nodes) {
    Graph::Node copy = node;
    copy.id = node_id(out->id, out->nodes.size());
    if (node.body != nullptr) copy.body = clone(core, *node.body);
    thread_state().created_nodes.push_back({GraphChange::kNodeCloned,
                                            reinterpret_cast<cudaGraph_t>(out.get()), nullptr, 0,
                                            copy.id, node.id, static_cast<int>(node.type)});
    out->nodes.push_back(std::move(copy));
  }
  return out;
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* out, unsigned) {
  return run_api(kCreate, [&](ApiCall& call) {
    if (out == nullptr) return cudaErrorInvalidValue;
    const Core::Lock held = Core::instance().lock();
    const auto graph = Core::instance().create_graph();
    call.details.graph = graph->id;
    *out = reinterpret_cast<cudaGraph_t>(graph.get());
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return run_api(kDestroy, [&](ApiCall&) {
    const Core::Lock held = Core::instance().lock();
    return Core::instance().destroy_graph(graph) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaGraphClone(cudaGraph_t* out, cudaGraph_t handle) {
  return run_api(kClone, [&](ApiCall& call) {
    Core& core = Core::instance();
    const Core::Lock held = core.lock();
    const auto graph = core.graph(handle);
    if (out == nullptr || graph == nullptr) return cudaErrorInvalidValue;
    const auto made = clone(core, *graph);
    call.details.graph = made->id;
    *out = reinterpret_cast<cudaGraph_t>(made.get());
    return cudaSuccess;
  });
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
// Nodes run in the order of their capture: each follows the one before.
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out,
                                         cudaGraphEdgeData*, size_t* count) {
  return run_api(kDependencies, [&](ApiCall&) {
    if (count == nullptr) return cudaErrorInvalidValue;
    const auto id = reinterpret_cast<uint64_t>(node);
    const size_t before = static_cast<uint32_t>(id) > 1 ? 1 : 0;
    if (out != nullptr && *count > 0 && before > 0) {
      out[0] = reinterpret_cast<cudaGraphNode_t>(id - 1);
    }
    *count = before;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  return run_api(kDotPrint, [](ApiCall&) { return cudaErrorNotSupported; });
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t*,
                                   size_t, const cudaKernelNodeParams* params) {
  return add(kAddKernel, out, graph, [&](Core&, Graph::Node& node) {
    node.type = NodeType::kKernel;
    node.work = kernel_work(*params);
    return node.work.info.name[0] ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  });
}
// "The child graph is cloned in this call" (CUDA runtime API).
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t graph,
                                       const cudaGraphNode_t*, size_t, cudaGraph_t child) {
  return add(kAddChild, out, graph, [&](Core& core, Graph::Node& node) {
    node.type = NodeType::kGraph;
    const auto graph = core.graph(child);
    if (graph == nullptr) return cudaErrorInvalidValue;
    node.body = clone(core, *graph);
    return cudaSuccess;
  });
}
// The handle is how many times a body runs: kernels, which would change it, do not run here.
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* out, cudaGraph_t graph,
                                             unsigned value, unsigned) {
  return run_api(kHandle, [&](ApiCall&) {
    if (out == nullptr || graph == nullptr) return cudaErrorInvalidValue;
    *out = value;
    return cudaSuccess;
  });
}
// Conditional nodes alone; the others have functions of their own.
cudaError_t cudaGraphAddNode(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t*,
                             const cudaGraphEdgeData*, size_t, cudaGraphNodeParams* params) {
  return add(kAddNode, out, graph, [&](Core& core, Graph::Node& node) {
    if (params == nullptr || params->type != cudaGraphNodeTypeConditional) {
      return cudaErrorNotSupported;
    }
    cudaConditionalNodeParams& in = params->conditional;
    node.type = NodeType::kConditional;
    node.repeats = static_cast<int>(in.handle);
    if (in.type == cudaGraphCondTypeIf && node.repeats > 1) node.repeats = 1;
    node.body = core.create_graph();
    static thread_local cudaGraph_t body;
    body = reinterpret_cast<cudaGraph_t>(node.body.get());
    in.phGraph_out = &body;
    return cudaSuccess;
  });
}

}  // extern "C"
