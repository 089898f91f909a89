// SPDX-License-Identifier: Apache-2.0
// Threads that each mark steps: marking_threads THREADS CAPTURE INSTANTIATE ROUNDS
// [PAUSE_US [device|stream|event|none]]. Each has a stream and, captured and instantiated in rounds
// of these numbers, a graph of two kernels, a set and a copy; a round is a launch, a copy, two
// launches of the graph and a wait: a cudaDeviceSynchronize, which marks, or one for the stream, or
// for an event in it, or none.
#include <pthread.h>

#include "tests/programs/hazard.h"

static int g_capture, g_instantiate, g_rounds, g_pause_us;
static const char* g_wait = "device";
// While any stream is captured no device may be waited for.
static pthread_rwlock_t g_capturing = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static cudaGraph_t capture(cudaStream_t stream, void* memory, const char* host) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  hazard_launch(2, stream);
  hazard_check(cudaMemsetAsync(memory, 1, 1024, stream), "set");
  hazard_check(cudaMemcpyAsync(memory, host, 4096, cudaMemcpyHostToDevice, stream), "copy");
  hazard_check(cudaStreamEndCapture(stream, &graph), "end capture");
  return graph;
}

static void wait_for(cudaStream_t stream, cudaEvent_t event) {
  if (strcmp(g_wait, "stream") == 0) {
    hazard_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  } else if (strcmp(g_wait, "event") == 0) {
    hazard_check(cudaEventRecord(event, stream), "cudaEventRecord");
    hazard_check(cudaEventSynchronize(event), "cudaEventSynchronize");
  } else if (strcmp(g_wait, "device") == 0) {
    pthread_rwlock_rdlock(&g_capturing);
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    pthread_rwlock_unlock(&g_capturing);
  }
}

static void* work(void* unused) {
  char* const host = calloc(1, 4096);
  void* memory = NULL;
  cudaStream_t stream = NULL;
  cudaEvent_t event = NULL;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  hazard_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  hazard_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event");
  hazard_check(cudaMalloc(&memory, 4096), "cudaMalloc");
  for (int round = 0; round < g_rounds; ++round) {
    if (round == g_capture) {
      pthread_rwlock_wrlock(&g_capturing);
      graph = capture(stream, memory, host);
      pthread_rwlock_unlock(&g_capturing);
    }
    if (round == g_instantiate) {
      hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
      hazard_check(cudaGraphDestroy(graph), "destroy graph");
    }
    hazard_launch(1, stream);
    hazard_check(cudaMemcpyAsync(memory, host, 4096, cudaMemcpyHostToDevice, stream), "copy");
    for (int i = 0; exec != NULL && i < 2; ++i) {
      hazard_check(cudaGraphLaunch(exec, stream), "launch graph");
    }
    if (g_pause_us) usleep((useconds_t)g_pause_us);
    wait_for(stream, event);
  }
  free(host);
  return unused;
}

int main(int count, char** arguments) {
  pthread_t threads[16];
  if (count < 5) return 2;
  const int wanted = atoi(arguments[1]);
  g_capture = atoi(arguments[2]);
  g_instantiate = atoi(arguments[3]);
  g_rounds = atoi(arguments[4]);
  g_pause_us = count > 5 ? atoi(arguments[5]) : 0;
  if (count > 6) g_wait = arguments[6];
  hazard_register_kernel();
  if (wanted < 1 || wanted > 16) return 2;
  for (int i = 1; i < wanted; ++i) {
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 91;
  }
  work(NULL);
  for (int i = 1; i < wanted; ++i) pthread_join(threads[i], NULL);
  printf("%d threads, %d rounds\n", wanted, g_rounds);
  return 0;
}
