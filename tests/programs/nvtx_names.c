// SPDX-License-Identifier: Apache-2.0
// Names by NVTX, given before and after the first CUDA call: of threads, categories, a stream and a
// GPU. A range that starts on the main thread and ends on another, and one that ends on its own.
//   nvtx_names leave RANGES    so many ranges start before a window ends and end after it
//   nvtx_names push RANGES     so many are pushed in the fourth of 20 steps and never popped, as
//                              where an exception passes by; each step has another one, which is
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "hazard.h"

static uint32_t tid(void) { return (uint32_t)syscall(SYS_gettid); }

static void* finish(void* range) {
  nvtxNameOsThreadA(tid(), "finisher of requests");
  nvtxRangeEnd(*(nvtxRangeId_t*)range);
  nvtxRangePushA("own range");
  hazard_launch(1, NULL);
  nvtxRangePop();
  return NULL;
}

static nvtxEventAttributes_t attributes(uint32_t category, const char* message) {
  nvtxEventAttributes_t out = {0};
  out.version = NVTX_VERSION;
  out.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  out.category = category;
  out.messageType = NVTX_MESSAGE_TYPE_ASCII;
  out.message.ascii = message;
  return out;
}

static void leave_ranges(int count) {
  static nvtxRangeId_t ranges[4096];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < count && i < 4096; ++i) ranges[i] = nvtxRangeStartA("left");
    hazard_launch(1, NULL);
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (int i = 0; i < count && i < 4096; ++i) nvtxRangeEnd(ranges[i]);
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

static void push_ranges(int count) {
  for (int step = 0; step < 20; ++step) {
    for (int i = 0; step == 3 && i < count; ++i) nvtxRangePushA("never popped");
    nvtxRangePushA("forward");
    hazard_launch(2, NULL);
    nvtxRangePop();
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    usleep(20000);
  }
}

int main(int argc, char** argv) {
  pthread_t thread;
  cudaStream_t stream;
  hazard_register_kernel();
  if (argc > 2 && strcmp(argv[1], "push") == 0) return push_ranges(atoi(argv[2])), 0;
  if (argc > 2) return leave_ranges(atoi(argv[2])), 0;
  nvtxNameOsThreadA(tid(), "first name");
  nvtxNameCategoryA(7, "loading");
  nvtxNameCudaDeviceA(0, "the big one");
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("service");
  nvtxDomainNameCategoryA(domain, 7, "requests");
  hazard_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  nvtxNameCudaStreamA(stream, "copies of weights");
  nvtxNameOsThreadA(tid(), "dispatcher");
  nvtxEventAttributes_t event = attributes(7, "load");
  nvtxRangePushEx(&event);
  hazard_launch(2, stream);
  nvtxRangePop();
  event = attributes(7, "request");
  nvtxRangeId_t crossing = nvtxDomainRangeStartEx(domain, &event);
  const nvtxRangeId_t own = nvtxRangeStartA("own start and end");
  event = attributes(8, "nameless");
  nvtxMarkEx(&event);
  nvtxRangeEnd(own);
  if (pthread_create(&thread, NULL, finish, &crossing) != 0) return 91;
  pthread_join(thread, NULL);
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return 0;
}
