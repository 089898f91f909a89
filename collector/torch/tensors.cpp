// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/tensors.h"

#include "collector/recorder.h"
#include "collector/session.h"

namespace gpuprof {

bool tensors_are_wanted() {
  return window_is_open() && activity_on(Activity::tensor) && !t_state.blocked;
}

void record_tensor(const TensorChange& change) {
  const uint64_t now = now_ticks();
  const TakenStack stack = change.released ? TakenStack{} : take_allocation_stack();
  Record* const record = reserve_record_after(stack, now, now);
  if (!record) return;
  record->begin = record->end = now;
  record->correlation = 0;
  record->api = kNoApi;
  record->kind = Kind::tensor;
  record->flags = 0;
  TensorPayload& out = record->tensor;
  out.address = reinterpret_cast<uint64_t>(change.address);
  out.bytes = change.bytes;
  out.allocated = change.allocated, out.kept = change.kept;
  out.device_type = change.device & 0xff;
  out.device = change.device >> 8 == 0xff ? 0xffff : change.device >> 8;
  out.released = change.released;
  commit_record(record);
}

}  // namespace gpuprof
