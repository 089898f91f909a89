// SPDX-License-Identifier: Apache-2.0
// What each part of an attached CUPTI adds to a launch: of the launching thread, and until the GPU
// is done. Then what is left of it after a detach, and after cuptiFinalize.
// usage: stages [pinned] [zeroed]
//   pinned: CUPTI keeps times in host memory; zeroed: it is told that its buffers are zero. Prints
//   JSON.
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define PROGRAM "stages"
#include "cupti_by_name.h"
#define DO(name, ...) check(CUPTI(name)(__VA_ARGS__), #name)

static bool finalizes = false;
static CUpti_SubscriberHandle subscriber;

static void CUPTIAPI on_request(uint8_t** buffer, size_t* size, size_t* count) {
  *size = 1 << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(4096, *size));
  std::memset(*buffer, 0, *size);
  *count = 0;
}

static void CUPTIAPI on_complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
  std::free(buffer);
}

static void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* const call = static_cast<const CUpti_CallbackData*>(data);
  if (!finalizes || call->callbackSite != CUPTI_API_EXIT) return;
  finalizes = false;
  DO(cuptiFinalize);
}

static double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Best of thirty rounds, us a launch: {of the launching thread, until the GPU is done}.
static void stage(const char* name) {
  constexpr int kLaunches = 500;
  double host = 1e9, whole = 1e9;
  for (int round = 0; round < 30; ++round) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) tiny<<<1, 32>>>();
    host = std::min(host, us_since(begin) / kLaunches);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    whole = std::min(whole, us_since(begin) / kLaunches);
  }
  static bool first = true;
  std::printf("%s\"%s\": [%.3f, %.3f]", first ? "{" : ", ", name, host, whole);
  std::fflush(stdout);
  first = false;
}

static void set(CUpti_ActivityAttribute attribute, uint8_t value) {
  size_t size = sizeof value;
  DO(cuptiActivitySetAttribute, attribute, &size, &value);
}

struct Kind {
  CUpti_ActivityKind kind;
  const char* name;
};
constexpr Kind kKinds[] = {{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"},
                           {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
                           {CUPTI_ACTIVITY_KIND_MEMORY2, "memory"},
                           {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "waits"},
                           {CUPTI_ACTIVITY_KIND_CUDA_EVENT, "events"},
                           {CUPTI_ACTIVITY_KIND_OVERHEAD, "overhead"}};

static void callback(int on, CUpti_CallbackDomain domain, const char* name, const char* said) {
  for (CUpti_CallbackId id = 1; id < 1000; ++id) {
    const char* found = nullptr;
    if (CUPTI(cuptiGetCallbackName)(domain, id, &found) != CUPTI_SUCCESS || !found) continue;
    if (std::strncmp(found, name, std::strlen(name)) != 0) continue;
    DO(cuptiEnableCallback, on, subscriber, domain, id);
  }
  stage(said);
}

int main(int argc, char** argv) {
  bool pinned = false, zeroed = false;
  for (int i = 1; i < argc; ++i) {
    pinned = pinned || std::strcmp(argv[i], "pinned") == 0;
    zeroed = zeroed || std::strcmp(argv[i], "zeroed") == 0;
  }
  check(cudaFree(nullptr), "cudaFree");
  stage("bare");
  DO(cuptiSubscribe, &subscriber, on_call, nullptr);
  stage("subscribed");
  callback(1, CUPTI_CB_DOMAIN_RUNTIME_API, "cudaLaunchKernel_v7000", "runtime_callback");
  callback(1, CUPTI_CB_DOMAIN_DRIVER_API, "cuLaunchKernel", "driver_callback");
  callback(0, CUPTI_CB_DOMAIN_RUNTIME_API, "cudaLaunchKernel_v7000", "driver_callback_alone");
  callback(0, CUPTI_CB_DOMAIN_DRIVER_API, "cuLaunchKernel", "no_callback");
  if (pinned) set(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, 1);
  if (zeroed) set(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
  DO(cuptiActivityRegisterCallbacks, on_request, on_complete);
  for (const Kind& kind : kKinds) {
    DO(cuptiActivityEnable, kind.kind);
    stage(kind.name);
  }
  callback(1, CUPTI_CB_DOMAIN_RUNTIME_API, "cudaLaunchKernel_v7000", "with_callbacks");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (const Kind& kind : kKinds) DO(cuptiActivityDisable, kind.kind);
  callback(0, CUPTI_CB_DOMAIN_RUNTIME_API, "cudaLaunchKernel_v7000", "disabled");
  DO(cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  DO(cuptiUnsubscribe, subscriber);
  stage("detached");
  DO(cuptiSubscribe, &subscriber, on_call, nullptr);
  DO(cuptiEnableDomain, 1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
  finalizes = true;
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  stage("finalized");
  std::printf("}\n");
  return 0;
}
