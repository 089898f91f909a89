// SPDX-License-Identifier: Apache-2.0
// Models (apis.def) of functions that the CUDA runtime has since 13.1 and 13.2, as
// generated_cuda_runtime_api_meta.h of CUPTI 13.5 declares them. The headers that this is compiled
// with may be older. Declared only; never called.
#pragma once

#include <cuda_runtime_api.h>

namespace gpuprof {

// cudaExecutionContext_t and cudaMemcpyAttributes*: only passed on.
struct ExecutionContext;
struct CopyAttributes;

cudaError_t later_context_wait(ExecutionContext*);  // cudaExecutionCtxSynchronize
// cudaMemcpyWithAttributesAsync, cudaMemcpy3DWithAttributesAsync
cudaError_t later_copy(void* to, const void* from, size_t bytes, CopyAttributes*, cudaStream_t);
cudaError_t later_copy_3d(cudaMemcpy3DBatchOp*, unsigned long long flags, cudaStream_t);
// cudaLaunchHostFunc_v2
cudaError_t later_host_function(cudaStream_t, cudaHostFn_t, void* data, unsigned mode);

}  // namespace gpuprof
