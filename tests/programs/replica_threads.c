// SPDX-License-Identifier: Apache-2.0
// A thread for each GPU, in step by a barrier: replica_threads GPUS ROUNDS SLOW_GPU FACTOR MARK
// A round is a mark of its begin, ten kernels of 100 us, of FACTOR times that on SLOW_GPU (-1:
// none), and a wait for the stream. MARK: nvtx (a range "step"), sync (a cudaDeviceSynchronize at
// the end), graph (the kernels are one CUDA graph), kernel (nothing: the kernels tell).
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdint.h>

#include "tests/programs/hazard.h"

// The simulator's; elsewhere all GPUs are as fast as they are.
void simcuda_set_next_kernel_ns(uint64_t ns) __attribute__((weak));

enum { kKernels = 10, kKernelNs = 100000 };

static int g_rounds, g_slow;
static double g_factor;
static const char* g_mark;
static pthread_barrier_t g_barrier;

static void launch(int device, cudaStream_t stream) {
  const double factor = device == g_slow ? g_factor : 1;
  if (simcuda_set_next_kernel_ns) simcuda_set_next_kernel_ns((uint64_t)(kKernelNs * factor));
  hazard_launch(1, stream);
}

static void* work(void* argument) {
  const int device = (int)(intptr_t)argument;
  char name[16];
  snprintf(name, sizeof name, "replica %d", device);
  pthread_setname_np(pthread_self(), name);
  cudaStream_t stream = NULL;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  hazard_check(cudaSetDevice(device), "cudaSetDevice");
  hazard_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  if (strcmp(g_mark, "graph") == 0) {
    hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int i = 0; i < kKernels; ++i) launch(device, stream);
    hazard_check(cudaStreamEndCapture(stream, &graph), "end capture");
    hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  }
  for (int round = 0; round < g_rounds; ++round) {
    pthread_barrier_wait(&g_barrier);
    if (strcmp(g_mark, "nvtx") == 0) nvtxRangePushA("step");
    if (exec != NULL) {
      hazard_check(cudaGraphLaunch(exec, stream), "launch graph");
    } else {
      for (int i = 0; i < kKernels; ++i) launch(device, stream);
    }
    hazard_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (strcmp(g_mark, "sync") == 0) hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (strcmp(g_mark, "nvtx") == 0) nvtxRangePop();
  }
  return NULL;
}

int main(int count, char** arguments) {
  pthread_t threads[8];
  if (count < 6) return 2;
  const int gpus = atoi(arguments[1]);
  g_rounds = atoi(arguments[2]);
  g_slow = atoi(arguments[3]);
  g_factor = atof(arguments[4]);
  g_mark = arguments[5];
  if (gpus < 1 || gpus > 8) return 2;
  hazard_register_kernel();
  if (pthread_barrier_init(&g_barrier, NULL, (unsigned)gpus) != 0) return 91;
  for (int i = 0; i < gpus; ++i) {
    if (pthread_create(&threads[i], NULL, work, (void*)(intptr_t)i) != 0) return 91;
  }
  for (int i = 0; i < gpus; ++i) pthread_join(threads[i], NULL);
  printf("%d GPUs, %d rounds\n", gpus, g_rounds);
  return 0;
}
