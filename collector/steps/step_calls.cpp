// SPDX-License-Identifier: Apache-2.0
// Which calls, ranges and reports are marks of which step source.
#include "collector/steps/step_calls.h"

#include <cstring>

#include "collector/record/collector.h"
#include "collector/record/communicators.h"
#include "collector/record/names.h"
#include "collector/record/session.h"
#include "collector/steps/kernel_steps.h"
#include "collector/steps/period_steps.h"
#include "formats/core/steps/step_names.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

// Which source a call is a mark of; automatic: none.
StepSource g_step_source[kMaxApis];

// The driver's are those of programs without a runtime of their own, or with one inside: what a
// hooked runtime does in the driver is part of its call.
StepSource source_of(const ApiRow& row) {
  switch (row.role) {
    case ApiRole::collective: return StepSource::nccl;
    case ApiRole::launch: return StepSource::kernel;
    case ApiRole::graph_launch: return StepSource::graph;
    case ApiRole::device_sync: return StepSource::sync;
    case ApiRole::profiler_start:
    case ApiRole::profiler_stop: return StepSource::profiler;
    case ApiRole::none:
    case ApiRole::call:
    case ApiRole::end_context:
    case ApiRole::copy:
    case ApiRole::set:
    case ApiRole::alloc:
    case ApiRole::dealloc:
    case ApiRole::host_alloc:
    case ApiRole::host_dealloc:
    case ApiRole::sync:
    case ApiRole::event:
    case ApiRole::stream:
    case ApiRole::graph:
    case ApiRole::begin_capture:
    case ApiRole::end_capture: break;
  }
  return StepSource::automatic;
}

bool is_launch(StepSource source) {
  return source == StepSource::kernel || source == StepSource::graph;
}

bool gives_work(ApiRole role) {
  return role == ApiRole::launch || role == ApiRole::graph_launch || role == ApiRole::copy ||
         role == ApiRole::set || role == ApiRole::collective;
}

}  // namespace

bool is_step_call(size_t api) {
  const Session& s = session();
  if (s.loads_data) return false;
  const StepSource source = g_step_source[api];
  if (s.watches_work.load(std::memory_order_relaxed) && gives_work(api_rows()[api].role)) {
    return true;
  }
  if (is_launch(source) && s.tracker.wants(StepSource::period)) return true;
  if (source == StepSource::automatic || !s.tracker.wants(source)) return false;
  if (source != StepSource::nccl || s.tracker.source() != source) return true;
  return std::strcmp(api_rows()[api].name, s.tracker.spec().name) == 0;
}

void find_step_calls() {
  for (size_t api = 0; api < api_count(); ++api) g_step_source[api] = source_of(api_rows()[api]);
}

// Most ranges are no steps: told by their text alone, which the lock that all marks take is not
// for. Names that `auto` has met are likely ones.
static bool may_be_step(std::string_view message) {
  const StepSpec& wanted = session().config.step;
  if (wanted.source == StepSource::nvtx) return step_name_matches(message, wanted.name);
  return !likely_step_name(message).empty();
}

void step_nvtx(std::string_view message, uint64_t ticks, bool (*is_thread)(const char* name)) {
  Session& s = session();
  if (!s.nvtx_steps.load(std::memory_order_relaxed) || !ensure_configured()) return;
  if (!may_be_step(message)) return;
  const ErrnoGuard keep_errno;
  {
    const StepLock guard;
    if (!guard || !s.tracker.nvtx_matches(message)) return;
  }
  const char* const thread = s.config.step.thread;
  if (thread[0] && !is_thread(thread)) return;
  step_mark({StepSource::nvtx, ticks});
}

// A launch, where steps are those that launches repeat.
static void step_launch(const StepSubject& subject) {
  // Of the library's own threads, and of those that tools start, nothing is recorded either.
  if (t_state.blocked || !period_launch(reinterpret_cast<uint64_t>(subject.object))) return;
  step_mark({StepSource::period, now_ticks()});
}

void step_after_call(ApiId api, const StepSubject& subject) {
  const StepSource source = g_step_source[api];
  if (is_launch(source) && session().config.step.source == StepSource::period) {
    return step_launch(subject);
  }
  Session& s = session();
  if (s.watches_work.load(std::memory_order_relaxed) && !t_state.blocked) {
    s.works.store(true, std::memory_order_relaxed);
    if (source == StepSource::automatic || source == StepSource::kernel) return;  // no marks now
  }
  // Most launches are none, and need no clock.
  if (source == StepSource::kernel && !kernel_matches(subject.object)) return;
  const uint64_t ticks = now_ticks();
  const ApiRow& row = api_rows()[api];
  switch (source) {
    case StepSource::nccl: {
      if (!is_largest_communicator(subject.object)) return;
      if (subject.captured) return;
      const uint64_t key =
          (subject.detail ^ reinterpret_cast<uint64_t>(subject.object) << 20) + api;
      return step_mark({StepSource::nccl, ticks, key, row.name});
    }
    case StepSource::kernel: return step_mark({StepSource::kernel, ticks});
    case StepSource::graph:
      return step_mark({StepSource::graph, ticks, reinterpret_cast<uint64_t>(subject.object)});
    case StepSource::profiler: return step_profiler(row.role == ApiRole::profiler_start, ticks);
    case StepSource::sync: return step_mark({StepSource::sync, ticks});
    case StepSource::automatic:
    case StepSource::manual:
    case StepSource::optimizer:
    case StepSource::nvtx:
    case StepSource::forward:
    case StepSource::period:
    case StepSource::time: return;  // no call of a table is their mark
  }
}

void step_manual() { step_mark({StepSource::manual, now_ticks()}); }

void step_optimizer(const void* optimizer) {
  // Not what wakes a process that has not used CUDA, unless the user named it.
  if (!session_is_live()) {
    if (t_state.blocked || !ensure_configured()) return;
    if (session().config.step.source != StepSource::optimizer) return;
  }
  step_mark({StepSource::optimizer, now_ticks(), reinterpret_cast<uint64_t>(optimizer)});
}

void step_forward(const void* module, bool trains, bool may_train) {
  if (!session_is_live() || session().loads_data) return;
  StepMark mark{StepSource::forward, now_ticks(), reinterpret_cast<uint64_t>(module)};
  mark.trains = trains;
  mark.may_train = may_train;
  step_mark(mark);
}

}  // namespace gpuprof
