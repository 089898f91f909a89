// SPDX-License-Identifier: Apache-2.0
// What a CUDA runtime that is linked into a program tells the driver about its own calls, so that
// CUPTI can show them: the real one does it through cuGetExportTable.
#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/start.h"
#include "tests/simcuda/driver/driver_api.h"

using namespace gpuprof::simcuda;

extern "C" {

// Until simcuda_static_leave of the returned call: the driver calls of this thread belong to it.
// `params` as CUPTI shows them; null: none.
void* simcuda_static_enter(unsigned callback_id, const char* name, const void* params) {
  start_driver();
  auto* const event = new ApiEvent();
  Core& core = Core::instance();
  event->cbid = callback_id;
  event->name = name;
  event->params = params;
  thread_state().has_context = true;
  event->device = thread_state().device;
  event->correlation = core.next_correlation();
  event->begin = now_ns();
  thread_state().static_runtime_call = event->correlation;
  if (CuptiSink* cupti = core.sink()) {
    event->enter_seen = true;
    cupti->api_enter(*event);
  }
  return event;
}

void simcuda_static_leave(void* call, int result) {
  auto* const event = static_cast<ApiEvent*>(call);
  event->return_code = static_cast<uint32_t>(result);
  event->return_value = &result;
  event->end = now_ns();
  if (CuptiSink* cupti = Core::instance().sink()) cupti->api_exit(*event);
  thread_state().static_runtime_call = 0;
  delete event;
}

}  // extern "C"
