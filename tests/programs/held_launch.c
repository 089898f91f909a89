// SPDX-License-Identifier: Apache-2.0
// A thread that launches a graph three times in a row while another one marks steps: held_launch
// STEPS FIRST SECOND. It launches it once before, and waits; then in steps FIRST and SECOND, and
// waits after the third. A step is a launch and a cudaDeviceSynchronize, 1 ms or more.
#include <pthread.h>
#include <semaphore.h>

#include "tests/programs/hazard.h"

static sem_t g_turn;
static cudaStream_t g_stream;
static cudaGraphExec_t g_exec;

static void launch_graph(int count) {
  for (int i = 0; i < count; ++i) {
    hazard_check(cudaGraphLaunch(g_exec, g_stream), "cudaGraphLaunch");
  }
  hazard_check(cudaStreamSynchronize(g_stream), "cudaStreamSynchronize");
}

static void* work(void* unused) {
  for (int turn = 0; turn < 2; ++turn) {
    while (sem_wait(&g_turn) != 0) {
    }
    launch_graph(3);
  }
  return unused;
}

static void capture(void) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking), "stream");
  hazard_check(cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  hazard_launch(2, g_stream);
  hazard_check(cudaStreamEndCapture(g_stream, &graph), "end capture");
  hazard_check(cudaGraphInstantiateWithFlags(&g_exec, graph, 0), "instantiate");
}

int main(int count, char** arguments) {
  pthread_t thread;
  if (count != 4) return 2;
  const int steps = atoi(arguments[1]), first = atoi(arguments[2]), second = atoi(arguments[3]);
  hazard_register_kernel();
  capture();
  launch_graph(1);
  if (sem_init(&g_turn, 0, 0) != 0 || pthread_create(&thread, NULL, work, NULL) != 0) return 91;
  for (int step = 0; step < steps; ++step) {
    if (step == first || step == second) sem_post(&g_turn);
    usleep(1000);
    hazard_launch(1, NULL);
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  pthread_join(thread, NULL);
  return 0;
}
