// SPDX-License-Identifier: Apache-2.0
// What a stream is being captured into, asked of the simulated runtime.
#include <cuda.h>

#include "tests/simcuda/core/port.h"

namespace gpuprof::simcuda {
namespace {

CUresult capture_info(CUstream stream, bool per_thread, CUstreamCaptureStatus* status,
                      cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CaptureInfo info = simcuda_core()->capture_info(stream, per_thread);
  *status = info.active ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  if (!info.active) return CUDA_SUCCESS;
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph;
  static thread_local CUgraphNode last;
  last = reinterpret_cast<CUgraphNode>(info.last_node);
  if (nodes != nullptr) *nodes = &last;
  if (count != nullptr) *count = info.last_node != 0;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace gpuprof::simcuda

using gpuprof::simcuda::capture_info;

extern "C" {

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  return capture_info(stream, false, status, id, graph, nodes, count);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status,
                                        cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                                        size_t* count) {
  return capture_info(stream, true, status, id, graph, nodes, count);
}

}  // extern "C"
