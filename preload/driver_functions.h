// SPDX-License-Identifier: Apache-2.0
// cuda.h without its renaming: the table's rows bear the names of the symbols, and the header turns
// some of these into the newest version of the function.
#pragma once

#include <cuda.h>

#include "preload/original_names.h"

extern "C" {
// As they were before the versions that the header declares.
CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
CUresult cuMemcpyBatchAsync(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*,
                            size_t*, size_t, size_t*, CUstream);
CUresult cuMemcpy3DBatchAsync(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*, unsigned long long,
                              CUstream);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1*);
// In cudaProfiler.h, which the wheels of the runtime do not bring.
CUresult cuProfilerStart();
CUresult cuProfilerStop();
}
