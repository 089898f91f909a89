// SPDX-License-Identifier: Apache-2.0
// What the hook of each function has to do, by the settings and the phase of the session.
#include <atomic>

#include "collector/record/collector.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/sources/event_times.h"
#include "collector/sources/graphs.h"
#include "collector/sources/heap.h"
#include "collector/sources/memory_log.h"
#include "collector/stacks/stacks.h"
#include "collector/steps/step_calls.h"

namespace gpuprof {

bool activity_on(Activity activity) {
  return session().config.activities >> static_cast<uint32_t>(activity) & 1;
}

Activity activity_of(const ApiRow& row) {
  if (row.library == Library::nccl) return Activity::nccl;
  switch (row.role) {
    case ApiRole::graph_launch:
    case ApiRole::graph:
    case ApiRole::begin_capture:
    case ApiRole::end_capture: return Activity::graph;
    case ApiRole::alloc:
    case ApiRole::dealloc:
    case ApiRole::host_alloc:
    case ApiRole::host_dealloc: return Activity::alloc;
    case ApiRole::sync:
    case ApiRole::device_sync: return Activity::sync;
    case ApiRole::none:
    case ApiRole::call:
    case ApiRole::end_context:
    case ApiRole::launch:
    case ApiRole::copy:
    case ApiRole::set:
    case ApiRole::event:
    case ApiRole::stream:
    case ApiRole::profiler_start:
    case ApiRole::profiler_stop:
    case ApiRole::collective: break;
  }
  return Activity::api;
}

// Whether what a call gives to the GPU is recorded.
static bool gpu_work_is_recorded(Kind call) {
  switch (call) {
    case Kind::launch: return activity_on(Activity::kernel);
    case Kind::copy: return activity_on(Activity::memcpy);
    case Kind::set: return activity_on(Activity::memset);
    default: return false;
  }
}

void apply_hook_flags() {
  Session& s = session();
  s.nvtx_steps.store(!s.loads_data && s.tracker.wants(StepSource::nvtx), std::memory_order_relaxed);
  const SessionPhase phase = s.phase.load(std::memory_order_relaxed);
  const bool recording = phase == SessionPhase::active, warms_up = phase == SessionPhase::warmup;
  const uint8_t record =
      static_cast<uint8_t>(kHookRecord | (g_clock_is_counter ? kHookCounter : 0));
  const bool capturing = any_capture();
  for (size_t api = 0; api < api_count(); ++api) {
    const ApiRow& row = api_rows()[api];
    uint8_t flags = kHookSettled;
    if (recording && activity_on(activity_of(row)) && !is_shed(row)) {
      flags |= record;
      if (stack_wanted(row)) flags |= kHookStack;
    }
    // The first stack through a function reads its unwind rule: stacks of the warm-up are taken
    // and thrown away, so that the window's first step does not wait for that.
    if (warms_up && stack_wanted(row)) flags |= kHookStack;
    // A graph is mostly captured before the window that it is launched in: its calls have their
    // stacks at any time.
    if (capturing && makes_graph_node(row.kind)) {
      flags |= kHookCapture;
      if (stack_wanted(row)) flags |= kHookStack;
    }
    // Contexts become known in the warm-up.
    if ((recording || warms_up) && event_times_wanted() && gpu_work_is_recorded(row.kind)) {
      flags |= kHookEvents;
    }
    if ((row.kind == Kind::alloc || row.kind == Kind::dealloc) && memory_log_is_on()) {
      flags |= kHookMemory;
      if (stack_wanted(row)) flags |= kHookStack;
    }
    if (is_step_call(api)) flags |= kHookStep;
    g_hook_flags[api].store(flags, std::memory_order_relaxed);
  }
  heap_switch(recording);
}

}  // namespace gpuprof
