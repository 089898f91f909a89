// SPDX-License-Identifier: Apache-2.0
// A program with a profiler of its own that is one of several subscribers of CUPTI (13.3), as
// torch.profiler's CUPTI monitor: functions by dlsym, a flush now and then, external ids.
//
//   subscribers FILE begin|late [graph] [force]
//
// 60 steps of 10 kernels, each ending in cudaDeviceSynchronize. `begin` records all of them, `late`
// the steps 25 to 34. FILE gets a line for each kernel that the profiler was told of: correlation
// id, external id, begin and end in CLOCK_MONOTONIC ns. `graph`: each step launches a CUDA graph of
// two kernels, too. `force`: in the middle of each third step all that CUPTI has is forced out.
//
//   subscribers errors
//
// prints what CUPTI answers where functions of V1 and V2 meet.
#include <cupti.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <time.h>

#include "tests/programs/hazard.h"

// cupti_callbacks.h and cupti_activity.h of 13.3.
typedef struct {
  size_t size;
  const char* name;
  char* first_name;
  size_t first_name_size;
  uint8_t several;
  uint8_t padding[7];
} Params;
typedef void (*Request)(uint8_t**, size_t*, size_t*, void*);
typedef void (*Complete)(uint8_t*, size_t, size_t, void*);

static struct {
  CUptiResult (*subscribe)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, Params*);
  CUptiResult (*subscribe_v1)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*);
  CUptiResult (*unsubscribe)(CUpti_SubscriberHandle);
  CUptiResult (*callback)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId);
  CUptiResult (*buffers)(CUpti_SubscriberHandle, Request, Complete);
  CUptiResult (*enable)(CUpti_SubscriberHandle, CUpti_ActivityKind, void*);
  CUptiResult (*disable)(CUpti_SubscriberHandle, CUpti_ActivityKind, void*);
  CUptiResult (*next)(CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**);
  CUptiResult (*dropped)(CUpti_SubscriberHandle, CUcontext, uint32_t, size_t*);
  CUptiResult (*attribute)(CUpti_SubscriberHandle, int, size_t*, void*);
  CUptiResult (*set_attribute)(CUpti_SubscriberHandle, int, size_t*, void*);
  CUptiResult (*push)(CUpti_SubscriberHandle, CUpti_ExternalCorrelationKind, uint64_t);
  CUptiResult (*pop)(CUpti_SubscriberHandle, CUpti_ExternalCorrelationKind, uint64_t*);
  CUptiResult (*flush)(uint32_t);
  CUptiResult (*enable_v1)(CUpti_ActivityKind);
  CUptiResult (*disable_v1)(CUpti_ActivityKind);
  CUptiResult (*dropped_v1)(CUcontext, uint32_t, size_t*);
  CUptiResult (*time_v1)(uint64_t*);
} cupti;

static void look_up(void) {
  void* const library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("%s\n", dlerror());
    exit(1);
  }
  *(void**)&cupti.subscribe = dlsym(library, "cuptiSubscribe_v2");
  *(void**)&cupti.subscribe_v1 = dlsym(library, "cuptiSubscribe");
  *(void**)&cupti.unsubscribe = dlsym(library, "cuptiUnsubscribe");
  *(void**)&cupti.callback = dlsym(library, "cuptiEnableCallback");
  *(void**)&cupti.buffers = dlsym(library, "cuptiActivityRegisterCallbacks_v2");
  *(void**)&cupti.enable = dlsym(library, "cuptiActivityEnable_v2");
  *(void**)&cupti.disable = dlsym(library, "cuptiActivityDisable_v2");
  *(void**)&cupti.next = dlsym(library, "cuptiActivityGetNextRecord_v2");
  *(void**)&cupti.dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords_v2");
  *(void**)&cupti.attribute = dlsym(library, "cuptiActivityGetAttribute_v2");
  *(void**)&cupti.set_attribute = dlsym(library, "cuptiActivitySetAttribute_v2");
  *(void**)&cupti.push = dlsym(library, "cuptiActivityPushExternalCorrelationId_v2");
  *(void**)&cupti.pop = dlsym(library, "cuptiActivityPopExternalCorrelationId_v2");
  *(void**)&cupti.flush = dlsym(library, "cuptiActivityFlushAll");
  *(void**)&cupti.enable_v1 = dlsym(library, "cuptiActivityEnable");
  *(void**)&cupti.disable_v1 = dlsym(library, "cuptiActivityDisable");
  *(void**)&cupti.dropped_v1 = dlsym(library, "cuptiActivityGetNumDroppedRecords");
  *(void**)&cupti.time_v1 = dlsym(library, "cuptiGetTimestamp");
}

enum { kSteps = 60, kLaunches = 10, kStepMs = 20, kMaxKernels = 4096 };

static CUpti_SubscriberHandle subscriber;
static int recording, callbacks, strays;
static struct {
  uint32_t correlation;
  uint64_t begin, end;
} kernels[kMaxKernels];
static uint64_t external[1 << 20];  // by correlation id
static int kernel_count, others;
static size_t lost;

static uint64_t read_clock(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// From CUPTI's default clock to CLOCK_MONOTONIC: of many readings the tightest.
static uint64_t clock_offset(void) {
  uint64_t width = UINT64_MAX, offset = 0;
  for (int i = 0; i < 200; ++i) {
    const uint64_t before = read_clock(CLOCK_MONOTONIC), there = read_clock(CLOCK_REALTIME);
    const uint64_t after = read_clock(CLOCK_MONOTONIC);
    if (after - before >= width) continue;
    width = after - before;
    offset = there - (before + width / 2);
  }
  return offset;
}

static void CUPTIAPI on_call(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void* data) {
  const CUpti_CallbackData* const call = data;
  if (user != &callbacks || domain != CUPTI_CB_DOMAIN_RUNTIME_API ||
      id != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 || !recording) {
    ++strays;
    return;
  }
  // A subscriber alone may rely on that word; one beside others writes to it all the same.
  if (call->callbackSite == CUPTI_API_ENTER) {
    *call->correlationData = 4711;
  } else {
    callbacks += *call->correlationData == 4711;
    *call->correlationData = 815;
  }
}

static void on_request(uint8_t** buffer, size_t* size, size_t* records, void* info) {
  (void)info;
  *size = 16 * 1024;
  *records = 0;
  *buffer = malloc(*size);
}

static void on_complete(uint8_t* buffer, size_t size, size_t valid, void* info) {
  (void)size, (void)info;
  CUpti_Activity* record = NULL;
  while (valid && cupti.next(subscriber, buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
      const CUpti_ActivityExternalCorrelation* const pair = (void*)record;
      if (pair->correlationId < sizeof external / sizeof *external) {
        external[pair->correlationId] = pair->externalId;
      }
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
               kernel_count < kMaxKernels) {
      const CUpti_ActivityKernel10* const kernel = (void*)record;
      kernels[kernel_count].correlation = kernel->correlationId;
      kernels[kernel_count].begin = kernel->start;
      kernels[kernel_count++].end = kernel->end;
    } else {
      ++others;
    }
  }
  size_t count = 0;
  if (cupti.dropped(subscriber, NULL, 0, &count) == CUPTI_SUCCESS) lost += count;
  free(buffer);
}

static void check(CUptiResult result, const char* what) {
  if (result != CUPTI_SUCCESS) printf("%s: CUPTI error %d\n", what, (int)result);
}

static void begin_recording(void) {
  Params params = {.size = sizeof params, .name = "monitor", .several = 1};
  const CUptiResult result = cupti.subscribe(&subscriber, on_call, &callbacks, &params);
  check(result, "cuptiSubscribe_v2");
  if (result != CUPTI_SUCCESS) return;
  check(cupti.buffers(subscriber, on_request, on_complete), "cuptiActivityRegisterCallbacks_v2");
  recording = 1;
  check(cupti.enable(subscriber, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, NULL), "enable");
  check(cupti.enable(subscriber, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, NULL), "enable");
  check(cupti.callback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                       CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
        "cuptiEnableCallback");
}

static void end_recording(void) {
  if (!recording) return;
  check(cupti.callback(0, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                       CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
        "cuptiEnableCallback");
  recording = 0;
  check(cupti.flush(0), "cuptiActivityFlushAll");
  check(cupti.disable(subscriber, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, NULL), "disable");
  check(cupti.disable(subscriber, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, NULL), "disable");
  check(cupti.unsubscribe(subscriber), "cuptiUnsubscribe");
}

static void write_kernels(const char* path) {
  FILE* const file = fopen(path, "w");
  const uint64_t offset = clock_offset();
  for (int i = 0; file && i < kernel_count; ++i) {
    const uint32_t id = kernels[i].correlation;
    const uint64_t name = id < sizeof external / sizeof *external ? external[id] : 0;
    const uint64_t begin = kernels[i].begin ? kernels[i].begin - offset : 0;
    const uint64_t end = kernels[i].end ? kernels[i].end - offset : 0;
    fprintf(file, "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", id, name, begin, end);
  }
  if (file) fclose(file);
}

static cudaGraphExec_t capture(cudaStream_t stream) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  hazard_launch(2, stream);
  hazard_check(cudaStreamEndCapture(stream, &graph), "end capture");
  hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  return exec;
}

static void run(int late, int graph, int force) {
  cudaStream_t stream = NULL;
  hazard_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const cudaGraphExec_t exec = graph ? capture(stream) : NULL;
  for (int step = 0; step < kSteps; ++step) {
    if (step == (late ? 25 : 0)) begin_recording();
    if (late && step == 35) end_recording();
    if (recording) cupti.push(subscriber, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, step + 1);
    hazard_launch(kLaunches, stream);
    if (exec) hazard_check(cudaGraphLaunch(exec, stream), "launch graph");
    if (force && step % 3 == 0) check(cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "flush");
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    uint64_t last = 0;
    if (recording) cupti.pop(subscriber, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    if (recording && last != (uint64_t)step + 1) printf("popped %" PRIu64 "\n", last);
    if (recording && step % 5 == 4) check(cupti.flush(0), "cuptiActivityFlushAll");
    usleep(kStepMs * 1000);
  }
  end_recording();
}

static void nothing(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                    const void* data) {
  (void)user, (void)domain, (void)id, (void)data;
}

static void tell_errors(void) {
  CUpti_SubscriberHandle one, two, three;
  char first[64] = "";
  Params several = {.size = sizeof several, .name = "one", .several = 1};
  Params alone = {.size = sizeof alone, .name = "alone"};
  Params second = {.size = sizeof second,
                   .name = "two",
                   .several = 1,
                   .first_name = first,
                   .first_name_size = sizeof first};
  const CUpti_ActivityKind kernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  uint8_t value = 0;
  size_t size = sizeof value, count = 0;
  uint64_t now = 0;
  hazard_check(cudaFree(NULL), "cudaFree");
  printf("several %d\n", cupti.subscribe(&one, nothing, NULL, &several));
  printf("second %d %s\n", cupti.subscribe(&two, nothing, NULL, &second), first);
  printf("alone beside %d\n", cupti.subscribe(&three, nothing, NULL, &alone));
  printf("V1 beside %d\n", cupti.subscribe_v1(&three, nothing, NULL));
  const CUptiResult got = cupti.attribute(one, 12, &size, &value);
  printf("state %d %d\n", got, value);
  printf("set state %d\n", cupti.set_attribute(one, 12, &size, &value));
  printf("set clock %d\n", cupti.set_attribute(one, 22, &size, &value));
  printf("enable %d\n", cupti.enable(one, kernel, NULL));
  value = 1;
  printf("whole graphs late %d\n", cupti.set_attribute(two, 20, &size, &value));
  printf("V1 enable %d\n", cupti.enable_v1(kernel));
  printf("V1 dropped %d\n", cupti.dropped_v1(NULL, 0, &count));
  printf("V1 time %d\n", cupti.time_v1(&now));
  printf("leave %d %d\n", cupti.unsubscribe(one), cupti.unsubscribe(two));
  printf("gone %d\n", cupti.enable(one, kernel, NULL));
  printf("V1 after %d\n", cupti.enable_v1(kernel));
  printf("several beside V1 %d\n", cupti.subscribe(&one, nothing, NULL, &several));
  cupti.disable_v1(kernel);
  printf("V1 alone %d\n", cupti.subscribe_v1(&one, nothing, NULL));
  printf("several beside V1 subscriber %d\n", cupti.subscribe(&two, nothing, NULL, &several));
}

int main(int argc, char** argv) {
  look_up();
  hazard_register_kernel();
  if (argc == 2) {
    tell_errors();
    return 0;
  }
  int late = 0, graph = 0, force = 0;
  for (int i = 2; i < argc; ++i) {
    late |= !strcmp(argv[i], "late");
    graph |= !strcmp(argv[i], "graph");
    force |= !strcmp(argv[i], "force");
  }
  run(late, graph, force);
  write_kernels(argv[1]);
  printf("%d callbacks, %d strays, %d other records, %zu lost\n", callbacks, strays, others, lost);
  return 0;
}
