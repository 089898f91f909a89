// SPDX-License-Identifier: Apache-2.0
// A program with a profiler of its own on CUPTI, as torch.profiler is:
//
//   kineto_like eager|activity|clock before|during|after...|graph|empty
//
// `eager` subscribes at its first use and never gives that back; `activity` uses the activity
// functions only; `clock` does so with a clock of its own. It profiles a few of 60 steps, long
// before, during and after the steps 20 to 39, and prints what it got: all of its own, nothing
// else's, in its own clock. From step 26 on one kernel of each step is another, which is loaded
// then: it comes into being while the program has CUPTI. `graph`: each step launches a CUDA graph,
// too, which was captured before the first. `empty`: a session before the first step, in which the
// GPU does nothing.
#include <cupti.h>
#include <stdint.h>
#include <time.h>

#include "tests/programs/hazard.h"

enum { kLaunches = 10, kGraphLaunches = 2, kStepMs = 40, kLateStep = 26 };

static int eager, own_clock, subscribed;
static int active, kernels, others, badly_timed, callbacks, stray_callbacks, foreign_buffers;
static uint64_t profile_begin, profile_end;
static uint8_t* lent[4096];
static int lent_count;

static uint64_t read_clock(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
// Nanoseconds since some other day.
static uint64_t CUPTIAPI my_clock(void) {
  return read_clock(CLOCK_MONOTONIC) + 12345678901234567ull;
}
static uint64_t now(void) { return own_clock ? my_clock() : read_clock(CLOCK_REALTIME); }

static void CUPTIAPI on_call(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void* data) {
  const CUpti_CallbackData* call = data;
  if (user != &callbacks || domain != CUPTI_CB_DOMAIN_RUNTIME_API ||
      id != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 || !active) {
    ++stray_callbacks;
    return;
  }
  // The word that goes from entry to exit is ours alone.
  if (call->callbackSite == CUPTI_API_ENTER) {
    *call->correlationData = 4711 + call->correlationId;
  } else if (*call->correlationData == 4711 + call->correlationId) {
    ++callbacks;
  } else {
    ++stray_callbacks;
  }
}

static void CUPTIAPI on_request(uint8_t** buffer, size_t* size, size_t* records) {
  *size = 64 * 1024;
  *records = 0;
  *buffer = malloc(*size);
  if (lent_count < 4096) lent[lent_count++] = *buffer;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                                 size_t valid) {
  (void)context, (void)stream, (void)size;
  int mine = 0;
  for (int i = 0; i < lent_count; ++i) mine |= lent[i] == buffer;
  if (!mine) {
    ++foreign_buffers;
    return;
  }
  CUpti_Activity* record = NULL;
  while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++others;
      continue;
    }
    const CUpti_ActivityKernel10* kernel = (const CUpti_ActivityKernel10*)record;
    ++kernels;
    if (kernel->start < profile_begin || kernel->end < kernel->start || kernel->end > now()) {
      ++badly_timed;
    }
  }
  free(buffer);
}

static void check(CUptiResult result, const char* what) {
  if (result != CUPTI_SUCCESS) printf("%s: CUPTI error %d\n", what, (int)result);
}

static CUpti_SubscriberHandle subscriber;

static void begin(void) {
  if (eager && !subscribed) {
    check(cuptiSubscribe(&subscriber, on_call, &callbacks), "cuptiSubscribe");
    subscribed = 1;
  }
  if (own_clock) {
    check(cuptiActivityRegisterTimestampCallback(my_clock),
          "cuptiActivityRegisterTimestampCallback");
  }
  check(cuptiActivityRegisterCallbacks(on_request, on_complete), "cuptiActivityRegisterCallbacks");
  profile_begin = now();
  check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  active = 1;
  if (eager) {
    check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                              CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
          "cuptiEnableCallback");
  }
}

static void end(void) {
  if (eager) {
    check(cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                              CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
          "cuptiEnableCallback");
  }
  active = 0;
  profile_end = now();
  check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityDisable");
  check(cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
}

static void late_kernel(void) {}

static void launch_late(void) {
  static void** module = NULL;
  static struct {
    int magic, version;
    const void* data;
    void* unused;
  } binary = {0x466243b1, 1, "", NULL};
  static char name[] = "_Z11late_kernelPf";
  void* pointer = NULL;
  void* arguments[1] = {&pointer};
  const dim3 grid = {3, 1, 1}, block = {32, 1, 1};
  const void* const function = (const void*)(size_t)&late_kernel;
  if (module == NULL) {
    module = __cudaRegisterFatBinary(&binary);
    __cudaRegisterFunction(module, (const char*)function, name, name, -1, NULL, NULL, NULL, NULL,
                           NULL);
    __cudaRegisterFatBinaryEnd(module);
  }
  hazard_check(cudaLaunchKernel(function, grid, block, arguments, 0, NULL), "late kernel");
}

static cudaStream_t stream;
static cudaGraphExec_t replay;

static void make_graph(void) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  hazard_launch(kGraphLaunches, stream);
  hazard_check(cudaStreamEndCapture(stream, &graph), "end capture");
  hazard_check(cudaGraphInstantiateWithFlags(&replay, graph, 0), "instantiate");
}

int main(int argc, char** argv) {
  int first[3], count = 0, graph = 0, empty = 0;
  for (int i = 2; i < argc && count < 3; ++i) {
    if (strcmp(argv[i], "graph") == 0) {
      graph = 1;
      continue;
    }
    if (strcmp(argv[i], "empty") == 0) {
      empty = 1;
      continue;
    }
    first[count++] = strcmp(argv[i], "before") == 0 ? 2 : strcmp(argv[i], "during") == 0 ? 24 : 48;
  }
  if (argc < 3) return 2;
  eager = strcmp(argv[1], "eager") == 0;
  own_clock = strcmp(argv[1], "clock") == 0;
  hazard_register_kernel();
  if (empty) {
    begin();
    end();
  }
  if (graph) make_graph();
  const struct timespec pause = {0, kStepMs * 1000000l};
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < count; ++i) {
      if (step == first[i]) begin();
    }
    hazard_launch(step < kLateStep ? kLaunches : kLaunches - 1, NULL);
    if (step >= kLateStep) launch_late();
    if (graph) hazard_check(cudaGraphLaunch(replay, stream), "launch graph");
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (int i = 0; i < count; ++i) {
      if (step == first[i] + 3) end();
    }
    nanosleep(&pause, NULL);
  }
  printf(
      "%d kernels, %d badly timed, %d other records, %d foreign buffers, %d callbacks, %d stray\n",
      kernels, badly_timed, others, foreign_buffers, callbacks, stray_callbacks);
  return kernels == 4 * (kLaunches + (graph ? kGraphLaunches : 0)) * count ? 0 : 1;
}
