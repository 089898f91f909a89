// SPDX-License-Identifier: Apache-2.0
// Communicators as NCCL hands them out: place, identity and name of each, remembered whether
// recording or not. Any thread; no allocation. The first sight of a communicator asks NCCL, whose
// functions are looked up under the loader's lock; all else takes none.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>

#include "collector/record/collector.h"

namespace gpuprof {

// What a call gives that goes on after it is usable, too.
inline bool is_usable(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

// One that was just made: what was known of its address is another's. Null: nothing happens.
void begin_communicator(ncclComm_t communicator, int rank_count, int rank);

void meet_communicator(ncclComm_t communicator);  // learn_communicator()'s slow part
// Of a communicator that a call names. NCCL knows size and rank of each, however it was made: split
// or shrunk, within a group, before this library was loaded. Asked once; again while NCCL is still
// making it.
inline void learn_communicator(ncclComm_t communicator) {
  if (communicator && is_new_communicator(communicator)) meet_communicator(communicator);
}
// Whether NCCL was asked about a communicator that it was still making.
extern std::atomic<bool> g_nccl_asked_early;
inline bool nccl_was_asked_early() { return g_nccl_asked_early.load(std::memory_order_relaxed); }

// After a call that makes a communicator at `made`; one that makes it from another names `parent`.
// NCCL may give the handle later: in a group when the outermost one ends, and of a parent that does
// not block when that is no longer in progress. `identity` 0: not known; `config` may be null.
void made_communicator(ncclResult_t result, ncclComm_t* made, ncclComm_t parent, uint64_t identity,
                       const ncclConfig_t* config = nullptr);

// The calling thread's groups nest.
void begin_nccl_group();
void end_nccl_group(ncclResult_t result);

// What became of the calling thread's operation on `parent`: where the program is told that it is
// over, what it is to make is there.
void end_nccl_operation(ncclComm_t parent, ncclResult_t state);
// The program goes on without having asked: what it still awaits may be anywhere.
void forget_awaited_communicators();

}  // namespace gpuprof
