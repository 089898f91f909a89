// SPDX-License-Identifier: Apache-2.0
// Captures again and again, as servers do for each shape of a request.
//   graph_updates update N    one executable graph, updated N times with 300 launches each, then
//                             launched in six steps
//   graph_updates capture N   N graphs of 300 launches, each instantiated, launched and destroyed;
//                             says how much resident memory the program has gained, in kB
//   graph_updates invalid     one capture that a wait makes invalid, so that it ends with an error,
//                             then steps until its input ends, 1,500 at most, and ten more
//   graph_updates beside N    N captures in the mode "global" beside launches in another stream
// A step ends with cudaDeviceSynchronize.
#include <poll.h>

#include "hazard.h"

enum { kLaunches = 300 };

static cudaGraph_t capture(cudaStream_t stream) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "begin");
  hazard_launch(kLaunches, stream);
  hazard_check(cudaStreamEndCapture(stream, &graph), "end");
  return graph;
}

static void update(cudaStream_t stream, int count) {
  cudaGraphExec_t exec = NULL;
  for (int i = 0; i < count; ++i) {
    const cudaGraph_t graph = capture(stream);
    cudaGraphExecUpdateResultInfo info;
    if (exec == NULL) {
      hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
    } else {
      hazard_check(cudaGraphExecUpdate(exec, graph, &info), "update");
    }
    hazard_check(cudaGraphDestroy(graph), "destroy");
  }
  for (int step = 0; step < 6; ++step) {
    hazard_check(cudaGraphLaunch(exec, stream), "launch");
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    usleep(30000);
  }
}

static void capture_anew(cudaStream_t stream, int count) {
  long before = 0;
  for (int i = 0; i < count; ++i) {
    if (i == count / 10) before = hazard_resident_kb();
    cudaGraphExec_t exec = NULL;
    const cudaGraph_t graph = capture(stream);
    hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
    hazard_check(cudaGraphLaunch(exec, stream), "launch");
    hazard_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    hazard_check(cudaGraphExecDestroy(exec), "destroy");
    hazard_check(cudaGraphDestroy(graph), "destroy");
  }
  printf("%ld\n", hazard_resident_kb() - before);
}

static void invalid(cudaStream_t stream) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "begin");
  (void)cudaStreamSynchronize(stream);
  printf("end: %d\n", (int)cudaStreamEndCapture(stream, &graph));
  (void)cudaGetLastError();
  struct pollfd input = {.fd = 0, .events = POLLIN};
  for (int step = 0; step < 1500 && poll(&input, 1, 20) == 0; ++step) hazard_steps(1, 2);
  for (int step = 0; step < 10; ++step) hazard_steps(1, 2);
}

// Captures in the mode "global", in which another thread's unsafe call would end them.
static void capture_beside(cudaStream_t stream, int count) {
  cudaStream_t other;
  hazard_check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
  for (int i = 0; i < count; ++i) {
    cudaGraph_t graph = NULL;
    hazard_launch(kLaunches, other);
    hazard_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin");
    hazard_launch(1, stream);
    hazard_launch(kLaunches, other);
    usleep(60000);
    printf("end: %d\n", (int)cudaStreamEndCapture(stream, &graph));
    if (graph != NULL) hazard_check(cudaGraphDestroy(graph), "destroy graph");
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  cudaStream_t stream;
  hazard_register_kernel();
  hazard_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  if (strcmp(what, "update") == 0) return update(stream, count), 0;
  if (strcmp(what, "capture") == 0) return capture_anew(stream, count), 0;
  if (strcmp(what, "beside") == 0) return capture_beside(stream, count), 0;
  if (strcmp(what, "invalid") == 0) return invalid(stream), 0;
  return 2;
}
