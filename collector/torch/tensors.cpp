// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/tensors.h"

#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/sources/memory_log.h"

namespace gpuprof {

namespace {

bool are_recorded() { return window_is_open() && activity_on(Activity::tensor); }

uint16_t device_of(const TensorChange& change) {
  return change.device >> 8 == 0xff ? kNoDevice : change.device >> 8;
}

}  // namespace

bool tensors_are_wanted() { return (are_recorded() || memory_log_is_on()) && !t_state.blocked; }

void record_tensor(const TensorChange& change) {
  const uint64_t now = now_ticks();
  const bool recorded = are_recorded();
  const bool logged = change.device != kCpuDevice && memory_log_is_on();
  if (!recorded && !logged) return;
  const TakenStack stack = change.released ? TakenStack{} : take_allocation_stack();
  if (logged) {
    log_block({reinterpret_cast<uint64_t>(change.address), change.bytes, change.allocated,
               change.kept, device_of(change), change.released},
              now, stack.id);
  }
  if (!recorded) return;
  Record* const record = reserve_record_after(stack, now, now);
  if (!record) return;
  look_for_silence(stack.id ? record - 1 : record, now);
  begin_record(record, Kind::tensor, now, now);
  TensorPayload& out = record->tensor;
  out.address = reinterpret_cast<uint64_t>(change.address);
  out.bytes = change.bytes;
  out.allocated = change.allocated, out.kept = change.kept;
  out.device_type = change.device & 0xff;
  out.device = device_of(change);
  out.released = change.released;
  commit_record(record);
}

void note_out_of_memory(uint64_t bytes, uint16_t device) {
  if (!memory_log_is_on() || t_state.blocked) return;
  log_allocator_failure(bytes, device >> 8 == 0xff ? kNoDevice : device >> 8);
}

}  // namespace gpuprof
