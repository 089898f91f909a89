// SPDX-License-Identifier: Apache-2.0
// Models (apis.def) of functions that NCCL has since 2.29 (grow, signals), 2.30 (suspend, resume)
// and 2.32 (collectives with a configuration), as nccl.h of 2.32.3 declares them. The headers that
// this is compiled with may be older. Declared only; never called.
#pragma once

#include <nccl.h>

#include <cstdint>

namespace gpuprof {

// ncclCollConfig_t: only passed on.
struct CollectiveConfig;

ncclResult_t later_reduce_all(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                              cudaStream_t, const CollectiveConfig*);  // AllReduce, ReduceScatter
ncclResult_t later_reduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int root,
                          ncclComm_t, cudaStream_t, const CollectiveConfig*);
ncclResult_t later_rooted(const void*, void*, size_t, ncclDataType_t, int root, ncclComm_t,
                          cudaStream_t, const CollectiveConfig*);  // Broadcast, Gather, Scatter
ncclResult_t later_gather_all(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t,
                              const CollectiveConfig*);  // AllGather, AlltoAll

ncclResult_t later_grow(ncclComm_t, int rank_count, const ncclUniqueId*, int rank, ncclComm_t* made,
                        ncclConfig_t*);
ncclResult_t later_unique_id(ncclComm_t, ncclUniqueId*);
ncclResult_t later_suspend(ncclComm_t, int flags);
ncclResult_t later_resume(ncclComm_t);
// ncclPutSignal, ncclSignal, ncclWaitSignal: NCCLX up to 2.28 exports the same names with other
// arguments (meta/rma/rma.cc), up to 9 of them; NCCL has 11, 6 and 4. All words are passed on, and
// none is read (see any_signatures.h).
ncclResult_t later_signals(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

}  // namespace gpuprof
