// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/operators.h"

#include <atomic>
#include <string_view>

#include "collector/base/log.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/torch/input_shapes.h"
#include "collector/torch/open_ranges.h"
#include "collector/torch/record_function.h"

namespace gpuprof {
namespace {

std::atomic<bool> g_with_shapes{false};

void on_begin(const RecordFunction& function, OperatorScope scope) {
  OpenRange* const range = open_range();
  if (!range) return;
  range->key = &function;
  range->name = intern_text(std::string_view(operator_name(function)));
  range->kind = scope == OperatorScope::annotation ? Kind::annotation : Kind::op;
  range->backward = scope == OperatorScope::backward;
  const int64_t sequence = operator_sequence(function);
  range->sequence = sequence < 0 ? 0 : static_cast<uint64_t>(sequence) + 1;
  if (g_with_shapes.load(std::memory_order_relaxed)) {
    const InputShapes shapes = input_shapes(function);
    range->input_dims = shapes.dims;
    range->input_types = shapes.types;
  }
  range->begin = now_ticks();
}

void on_end(const RecordFunction& function) {
  if (!close_range(&function)) close_range_of_another(&function);
}

}  // namespace

void operators_prepare() {
  if (activity_on(Activity::op)) try_observers();
}

void operators_begin() {
  forget_ranges();
  if (!activity_on(Activity::op) || is_shed(ShedKind::operators)) return;
  const bool shapes = activity_on(Activity::op_shapes) && input_shapes_are_known();
  g_with_shapes.store(shapes, std::memory_order_relaxed);
  static std::atomic<bool> said{false};
  const ObserveResult result = observe_operators({on_begin, on_end, shapes});
  if (result != ObserveResult::unknown_torch || said.exchange(true)) return;
  log_line(LogLevel::warn,
           "operators are not recorded: this PyTorch does not have the observers that gpuprof "
           "knows (1.13 and later have)");
}

void stop_recording_operators() { stop_observing_operators(); }

void operators_end(uint64_t ticks) {
  stop_observing_operators();
  cut_ranges(ticks);
}

}  // namespace gpuprof
