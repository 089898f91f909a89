// SPDX-License-Identifier: Apache-2.0
// The driver's graphs: captures, executable graphs in all the ways to make one, updates.
#include "tests/simcuda/driver/driver_api.h"

#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate

namespace gpuprof::simcuda {
namespace {

SIM_API(cuStreamBeginCapture_v2)
SIM_API(cuStreamBeginCapture_v2_ptsz)
SIM_API(cuStreamBeginCaptureToGraph)
SIM_API(cuStreamBeginCaptureToGraph_ptsz)
SIM_API(cuStreamEndCapture)
SIM_API(cuStreamEndCapture_ptsz)
SIM_API(cuGraphInstantiate)
SIM_API(cuGraphInstantiate_v2)
SIM_API(cuGraphInstantiateWithFlags)
SIM_API(cuGraphInstantiateWithParams)
SIM_API(cuGraphInstantiateWithParams_ptsz)
SIM_API(cuGraphUpload)
SIM_API(cuGraphUpload_ptsz)
SIM_API(cuGraphExecUpdate)
SIM_API(cuGraphExecUpdate_v2)
SIM_API(cuGraphExecKernelNodeSetParams)
SIM_API(cuGraphExecKernelNodeSetParams_v2)
SIM_API(cuGraphExecDestroy)
SIM_API(cuGraphDestroy)
SIM_GETTER(cuGraphGetNodes)
SIM_GETTER(cuGraphNodeGetType)
SIM_GETTER(cuGraphCreate)

cudaStreamCaptureMode mode_of(CUstreamCaptureMode mode) {
  return static_cast<cudaStreamCaptureMode>(mode);
}

// The result tells more than there is to tell here: success, or another shape.
CUresult update(const ApiInfo& api, CUgraphExec exec, CUgraph graph) {
  cudaGraphExecUpdateResultInfo info;
  return as_driver(api, [&] { return cudaGraphExecUpdate(exec, graph, &info); });
}

template <typename Params>
CUresult set_params(const ApiInfo& api, CUgraphExec exec, CUgraphNode node, const Params* p) {
  cudaKernelNodeParams params{};
  params.func = p->func;
  params.gridDim = dim3(p->gridDimX, p->gridDimY, p->gridDimZ);
  params.blockDim = dim3(p->blockDimX, p->blockDimY, p->blockDimZ);
  params.sharedMemBytes = p->sharedMemBytes;
  return as_driver(api, [&] { return cudaGraphExecKernelNodeSetParams(exec, node, &params); });
}

}  // namespace
}  // namespace gpuprof::simcuda

using namespace gpuprof::simcuda;

#define SIM_AS(name, parameters, call)                \
  CUresult name parameters {                          \
    return as_driver(k_##name, [&] { return call; }); \
  }

extern "C" {

SIM_AS(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode),
       cudaStreamBeginCapture(s, mode_of(mode)))
SIM_AS(cuStreamBeginCapture_v2_ptsz, (CUstream s, CUstreamCaptureMode mode),
       cudaStreamBeginCapture_ptsz(s, mode_of(mode)))
SIM_AS(cuStreamBeginCaptureToGraph,
       (CUstream s, CUgraph g, const CUgraphNode*, const CUgraphEdgeData*, size_t,
        CUstreamCaptureMode mode),
       cudaStreamBeginCaptureToGraph(s, g, nullptr, nullptr, 0, mode_of(mode)))
SIM_AS(cuStreamBeginCaptureToGraph_ptsz,
       (CUstream s, CUgraph g, const CUgraphNode*, const CUgraphEdgeData*, size_t,
        CUstreamCaptureMode mode),
       cudaStreamBeginCaptureToGraph_ptsz(s, g, nullptr, nullptr, 0, mode_of(mode)))
SIM_AS(cuStreamEndCapture, (CUstream s, CUgraph* g), cudaStreamEndCapture(s, g))
SIM_AS(cuStreamEndCapture_ptsz, (CUstream s, CUgraph* g), cudaStreamEndCapture_ptsz(s, g))
SIM_AS(cuGraphInstantiate, (CUgraphExec * out, CUgraph g, CUgraphNode*, char*, size_t),
       cudaGraphInstantiateWithFlags(out, g, 0))
SIM_AS(cuGraphInstantiate_v2, (CUgraphExec * out, CUgraph g, CUgraphNode*, char*, size_t),
       cudaGraphInstantiateWithFlags(out, g, 0))
SIM_AS(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph g, unsigned long long flags),
       cudaGraphInstantiateWithFlags(out, g, flags))
SIM_AS(cuGraphInstantiateWithParams,
       (CUgraphExec * out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
       cudaGraphInstantiateWithFlags(out, g, params->flags))
SIM_AS(cuGraphInstantiateWithParams_ptsz,
       (CUgraphExec * out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
       cudaGraphInstantiateWithFlags(out, g, params->flags))
SIM_AS(cuGraphUpload, (CUgraphExec g, CUstream s), cudaGraphUpload(g, s))
SIM_AS(cuGraphUpload_ptsz, (CUgraphExec g, CUstream s), cudaGraphUpload_ptsz(g, s))
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode*,
                           CUgraphExecUpdateResult*) {
  return update(k_cuGraphExecUpdate, exec, graph);
}
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo*) {
  return update(k_cuGraphExecUpdate_v2, exec, graph);
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return set_params(k_cuGraphExecKernelNodeSetParams, exec, node, p);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  return set_params(k_cuGraphExecKernelNodeSetParams_v2, exec, node, p);
}
SIM_AS(cuGraphExecDestroy, (CUgraphExec g), cudaGraphExecDestroy(g))
SIM_AS(cuGraphDestroy, (CUgraph g), cudaGraphDestroy(g))
SIM_AS(cuGraphGetNodes, (CUgraph g, CUgraphNode* nodes, size_t* count),
       cudaGraphGetNodes(g, nodes, count))
CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return as_driver(k_cuGraphNodeGetType, [&] {
    const Core::Lock held = Core::instance().lock();
    const Graph::Node* const node = Core::instance().graph_node(reinterpret_cast<uint64_t>(handle));
    if (node == nullptr || type == nullptr) return cudaErrorInvalidValue;
    *type = static_cast<CUgraphNodeType>(node->type);
    return cudaSuccess;
  });
}
SIM_AS(cuGraphCreate, (CUgraph * g, unsigned flags), cudaGraphCreate(g, flags))

}  // extern "C"
