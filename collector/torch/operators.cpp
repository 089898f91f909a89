// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/operators.h"

#include <sys/mman.h>

#include <cstring>
#include <string_view>

#include "collector/log.h"
#include "collector/os.h"
#include "collector/recorder.h"
#include "collector/session.h"
#include "collector/torch/record_function.h"

namespace gpuprof {

// The ranges that run on one thread, innermost last.
struct OperatorThread {
  static constexpr uint32_t kDepth = 254;
  struct Range {
    const RecordFunction* function;
    uint64_t begin;
    StringId name;
    Kind kind;
    bool backward;
    int64_t sequence;
  };
  uint32_t depth;
  Range open[kDepth];
};

const size_t kOperatorThreadBytes = sizeof(OperatorThread);

namespace {

OperatorThread* thread_ranges() {
  if (t_state.operators) return t_state.operators;
  const ErrnoGuard keep_errno;
  void* const memory = ::mmap(nullptr, sizeof(OperatorThread), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_state.operators = static_cast<OperatorThread*>(memory);
  release_at_thread_exit();
  return t_state.operators;
}

void publish(const OperatorThread::Range& range, uint64_t end, uint8_t flags) {
  Record* const record = reserve_record();
  if (!record) return;
  record->begin = range.begin;
  record->end = end;
  record->correlation = 0;
  record->api = kNoApi;
  record->kind = range.kind;
  record->flags = flags;
  record->framework = FrameworkPayload{};
  record->framework.name = range.name;
  record->framework.backward = range.backward;
  record->framework.sequence = static_cast<uint64_t>(range.sequence + 1);
  commit_record(record);
}

void on_begin(const RecordFunction& function, OperatorScope scope) {
  if (!window_is_open() || t_state.blocked) return;
  OperatorThread* const thread = thread_ranges();
  if (!thread) return;
  if (thread->depth == OperatorThread::kDepth) {
    count_loss(Loss::operator_depth);
    return;
  }
  OperatorThread::Range& range = thread->open[thread->depth++];
  range.function = &function;
  range.name = intern_string(std::string_view(operator_name(function)));
  range.kind = scope == OperatorScope::annotation ? Kind::annotation : Kind::op;
  range.backward = scope == OperatorScope::backward;
  range.sequence = operator_sequence(function);
  if (range.sequence < -1) range.sequence = -1;
  range.begin = now_ticks();
}

// Ranges mostly end in the order of a stack; those that the program ends by hand need not. One that
// ends on another thread is given up.
void on_end(const RecordFunction& function) {
  OperatorThread* const thread = t_state.operators;
  if (!thread || thread->depth == 0) return;
  uint32_t at = thread->depth;
  while (at > 0 && thread->open[at - 1].function != &function) --at;
  if (at-- == 0) return;
  const uint64_t end = now_ticks();
  const OperatorThread::Range range = thread->open[at];
  std::memmove(&thread->open[at], &thread->open[at + 1], (thread->depth - at - 1) * sizeof range);
  --thread->depth;
  const SessionPhase phase = session().phase.load(std::memory_order_relaxed);
  if (phase == SessionPhase::active || phase == SessionPhase::closing) publish(range, end, 0);
}

}  // namespace

void operators_begin() {
  if (!activity_on(Activity::op)) return;
  if (OperatorThread* const thread = t_state.operators) thread->depth = 0;
  static std::atomic<bool> said{false};
  const ObserveResult result = observe_operators({on_begin, on_end});
  if (result != ObserveResult::unknown_torch || said.exchange(true)) return;
  log_line(LogLevel::warn,
           "operators are not recorded: this PyTorch does not have the observers that gpuprof "
           "knows (1.13 and later have)");
}

void operators_end(uint64_t ticks) {
  stop_observing_operators();
  OperatorThread* const thread = t_state.operators;
  if (!thread) return;
  while (thread->depth > 0) publish(thread->open[--thread->depth], ticks, kFlagOpenEnd);
}

}  // namespace gpuprof
