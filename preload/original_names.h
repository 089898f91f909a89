// SPDX-License-Identifier: Apache-2.0
// No include guard: after it, these are the names of the exported symbols again. cuda.h turns each
// into the newest version of the function.
#undef cuGetProcAddress
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync
