// SPDX-License-Identifier: Apache-2.0
// What a launch costs before CUPTI is attached, while it is, after a detach as gpuprof does it, and
// after cuptiFinalize, which is called as NVIDIA's guide says: from the exit of a CUDA call.
// usage: detach keep|finalize. Attaches and detaches twice; with a CUDA graph of before. Prints
// JSON.
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define PROGRAM "detach"
#include "cupti_by_name.h"

static size_t records = 0;
static bool finalizes = false, finalized = false;
static CUpti_SubscriberHandle subscriber;

static void CUPTIAPI on_request(uint8_t** buffer, size_t* size, size_t* count) {
  *size = 1 << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *count = 0;
}

static void CUPTIAPI on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS) {
    records += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  }
  std::free(buffer);
}

static void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* const call = static_cast<const CUpti_CallbackData*>(data);
  if (!finalizes || call->callbackSite != CUPTI_API_EXIT) return;
  finalizes = false;
  check(CUPTI(cuptiFinalize)(), "cuptiFinalize");
  finalized = true;
}

static void attach() {
  records = 0;
  check(CUPTI(cuptiSubscribe)(&subscriber, on_call, nullptr), "cuptiSubscribe");
  check(CUPTI(cuptiActivityRegisterCallbacks)(on_request, on_complete), "register");
  check(CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable");
}

static void detach(bool finalize) {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "disable");
  check(CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "flush");
  if (!finalize) return check(CUPTI(cuptiUnsubscribe)(subscriber), "cuptiUnsubscribe");
  check(CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), "domain");
  finalizes = true;
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (finalized)
    finalized = false;
  else
    check(3, "the exit of a call was not told");
}

// Best of twenty, us a launch.
static double launch_us() {
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 500; ++i) tiny<<<1, 32>>>();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / 500);
  }
  return best;
}

int main(int argc, char** argv) {
  const bool finalize = argc > 1 && std::strcmp(argv[1], "finalize") == 0;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < 3; ++i) tiny<<<1, 32, 0, stream>>>();
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  std::printf("{\"bare\": %.3f", launch_us());
  for (int session = 1; session <= 2; ++session) {
    attach();
    check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    const double attached = launch_us();
    detach(finalize);
    const size_t seen = records;
    check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    std::printf(", \"attached%d\": %.3f, \"records%d\": %zu, \"after%d\": %.3f", session, attached,
                session, seen, session, launch_us());
  }
  std::printf("}\n");
  return 0;
}
