// SPDX-License-Identifier: Apache-2.0
// What a call of NCCL's is counted as, whether a hook or its NVTX range tells of it.
#pragma once

#include "collector/record/collector.h"
#include "collector/torch/process_groups.h"
#include "preload/api.h"

namespace gpuprof {

// `peer`: of a send or receive; else any.
inline MessagePath path_of(Api api, int peer) {
  const bool sends = api == Api::ncclSend;
  return sends || api == Api::ncclRecv ? MessagePath{peer, sends} : MessagePath{};
}

// Counts the call on its communicator; while the first one is issued PyTorch says which of its
// process groups it is of.
inline CommunicatorPlace note_call(const void* communicator, uint32_t* sequence, MessagePath path,
                                   bool usable = true) {
  const CommunicatorPlace place = note_collective(communicator, sequence, path, usable);
  if (place.asks_group) name_group_of(communicator);
  return place;
}

}  // namespace gpuprof
