// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/open_ranges.h"

#include <sys/mman.h>

#include <cstring>

#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"

namespace gpuprof {

// The ranges that run on one thread, innermost last.
struct RangeThread {
  static constexpr uint32_t kDepth = 254;
  uint32_t depth;
  OpenRange open[kDepth];
};

const size_t kRangeThreadBytes = sizeof(RangeThread);

namespace {

RangeThread* this_thread() {
  if (t_state.ranges) return t_state.ranges;
  const ErrnoGuard keep_errno;
  void* const memory = ::mmap(nullptr, sizeof(RangeThread), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_state.ranges = static_cast<RangeThread*>(memory);
  release_at_thread_exit();
  return t_state.ranges;
}

void publish(const OpenRange& range, uint64_t end, uint8_t flags) {
  Record* const record = reserve_program_record(end);
  if (!record) return;
  begin_record(record, range.kind, range.begin, end, flags);
  record->framework = FrameworkPayload{};
  record->framework.name = range.name;
  record->framework.input_dims = range.input_dims;
  record->framework.input_types = range.input_types;
  record->framework.backward = range.backward;
  record->framework.sequence = range.sequence;
  commit_record(record);
}

}  // namespace

OpenRange* open_range() {
  if (!window_is_open() || t_state.blocked || is_shed(ShedKind::operators)) return nullptr;
  RangeThread* const thread = this_thread();
  if (!thread) return nullptr;
  if (thread->depth == RangeThread::kDepth) {
    count_loss(Loss::operator_depth);
    return nullptr;
  }
  OpenRange& range = thread->open[thread->depth++];
  range = OpenRange{};
  return &range;
}

const OpenRange* innermost_range(Kind kind) {
  const RangeThread* const thread = t_state.ranges;
  for (uint32_t at = thread ? thread->depth : 0; at > 0; --at) {
    if (thread->open[at - 1].kind == kind) return &thread->open[at - 1];
  }
  return nullptr;
}

void close_range(const void* key) {
  RangeThread* const thread = t_state.ranges;
  if (!thread || thread->depth == 0) return;
  uint32_t at = thread->depth;
  while (at > 0 && thread->open[at - 1].key != key) --at;
  if (at-- == 0) return;
  const uint64_t end = now_ticks();
  const OpenRange range = thread->open[at];
  std::memmove(&thread->open[at], &thread->open[at + 1], (thread->depth - at - 1) * sizeof range);
  --thread->depth;
  const SessionPhase phase = session().phase.load(std::memory_order_relaxed);
  if (phase == SessionPhase::active || phase == SessionPhase::closing) publish(range, end, 0);
}

void forget_ranges() {
  if (RangeThread* const thread = t_state.ranges) thread->depth = 0;
}

void cut_ranges(uint64_t ticks) {
  RangeThread* const thread = t_state.ranges;
  if (!thread) return;
  while (thread->depth > 0) publish(thread->open[--thread->depth], ticks, kFlagOpenEnd);
}

}  // namespace gpuprof
