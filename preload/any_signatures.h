// SPDX-License-Identifier: Apache-2.0
// Models (apis.def) of functions that have had several signatures under one name. Each has as many
// words as the longest of them, and passes all on. In the calling conventions of x86-64 and of
// 64-bit Arm the words lie where they lay. A shorter form's callee never reads what its caller did
// not give. A struct of one word counts as a word. Declared only; never called.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/driver_functions.h"

// The result's type tells the runtime's from the driver's.
#include <cuda_runtime_api.h>

namespace gpuprof {

// cudaMemcpyBatchAsync: 12.8 has `stream` last, after where to say which copy failed; 13.0 has it
// in `fail_or_stream`.
cudaError_t any_runtime_memcpy_batch(void** to, void** from, size_t* sizes, size_t count,
                                     void* attributes, size_t* indices, size_t attribute_count,
                                     uintptr_t fail_or_stream, uintptr_t stream);
// cudaMemcpy3DBatchAsync: 12.8 (count, copies, fail, flags, stream), 13.0 without `fail`.
cudaError_t any_runtime_memcpy_3d_batch(size_t count, cudaMemcpy3DBatchOp* copies,
                                        uintptr_t fail_or_flags, uintptr_t flags_or_stream,
                                        uintptr_t stream);
// cudaMemPrefetchAsync: before 13.0 (address, bytes, device, stream), since (…, location, flags,
// stream). cudaMemAdvise: a device, then a location.
cudaError_t any_runtime_prefetch(const void* address, size_t bytes, uintptr_t place,
                                 uintptr_t flags_or_stream, uintptr_t stream);
cudaError_t any_runtime_advise(const void* address, size_t bytes, int advice, uintptr_t place);
// cudaGraphInstantiate, cuGraphInstantiate, cuGraphInstantiate_v2: before 12.0 (out, graph, node,
// log, log's size), since (out, graph, flags).
cudaError_t any_runtime_graph_instantiate(cudaGraphExec_t* out, cudaGraph_t graph,
                                          uintptr_t flags_or_node, uintptr_t log, uintptr_t size);
CUresult any_driver_graph_instantiate(CUgraphExec* out, CUgraph graph, uintptr_t flags_or_node,
                                      uintptr_t log, uintptr_t size);
// cudaGraphExecUpdate, cuGraphExecUpdate: before 12.0 (exec, graph, node, result), since (exec,
// graph, info).
cudaError_t any_runtime_graph_update(cudaGraphExec_t exec, cudaGraph_t graph,
                                     uintptr_t info_or_node, uintptr_t result);
CUresult any_driver_graph_update(CUgraphExec exec, CUgraph graph, uintptr_t info_or_node,
                                 uintptr_t result);

}  // namespace gpuprof
