// SPDX-License-Identifier: Apache-2.0
// CUDA graphs before, inside and across a window: graphs CAPTURE INSTANTIATE UPDATE DESTROY, each
// the number of the step it happens in, -1: never. Nine steps, each ends in cudaDeviceSynchronize.
#include "tests/programs/hazard.h"

enum { kSteps = 9, kLaunches = 2 };

static cudaStream_t g_stream, g_side;
static cudaEvent_t g_fork, g_join;
static void* g_memory;
static char g_host[4096];

// Two kernels, a set on a forked stream, a copy.
static cudaGraph_t capture(int kernels) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeGlobal), "begin capture");
  hazard_launch(kernels, g_stream);
  hazard_check(cudaEventRecord(g_fork, g_stream), "fork");
  hazard_check(cudaStreamWaitEvent(g_side, g_fork, 0), "wait for fork");
  hazard_check(cudaMemsetAsync(g_memory, 1, 1024, g_side), "set");
  hazard_check(cudaEventRecord(g_join, g_side), "join");
  hazard_check(cudaStreamWaitEvent(g_stream, g_join, 0), "wait for join");
  hazard_check(cudaMemcpyAsync(g_memory, g_host, sizeof g_host, cudaMemcpyHostToDevice, g_stream),
               "copy");
  hazard_check(cudaStreamEndCapture(g_stream, &graph), "end capture");
  return graph;
}

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const int when_capture = atoi(arguments[1]), when_instantiate = atoi(arguments[2]);
  const int when_update = atoi(arguments[3]), when_destroy = atoi(arguments[4]);
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  int launches = 0;
  hazard_register_kernel();
  hazard_check(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking), "stream");
  hazard_check(cudaStreamCreateWithFlags(&g_side, cudaStreamNonBlocking), "stream");
  hazard_check(cudaEventCreateWithFlags(&g_fork, cudaEventDisableTiming), "event");
  hazard_check(cudaEventCreateWithFlags(&g_join, cudaEventDisableTiming), "event");
  hazard_check(cudaMalloc(&g_memory, sizeof g_host), "cudaMalloc");
  for (int step = 0; step < kSteps; ++step) {
    if (step == when_capture) graph = capture(2);
    if (step == when_instantiate) {
      hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
      hazard_check(cudaGraphDestroy(graph), "destroy graph");
    }
    if (step == when_update) {
      cudaGraphExecUpdateResultInfo info;
      cudaGraph_t other = capture(2);
      hazard_check(cudaGraphExecUpdate(exec, other, &info), "update");
      hazard_check(cudaGraphDestroy(other), "destroy graph");
      other = capture(3);  // another topology: refused, and the error is the program's to see
      printf("update with three kernels: %d\n", (int)cudaGraphExecUpdate(exec, other, &info));
      hazard_check(cudaGraphDestroy(other), "destroy graph");
    }
    hazard_launch(1, g_stream);
    for (int i = 0; exec != NULL && i < kLaunches; ++i, ++launches) {
      hazard_check(cudaGraphLaunch(exec, g_stream), "launch graph");
    }
    if (step == when_destroy) {
      hazard_check(cudaStreamSynchronize(g_stream), "synchronize");
      hazard_check(cudaGraphExecDestroy(exec), "destroy exec");
      exec = NULL;
    }
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  printf("%d graph launches\n", launches);
  return 0;
}
