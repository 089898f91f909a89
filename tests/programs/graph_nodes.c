// SPDX-License-Identifier: Apache-2.0
// A CUDA graph of chosen kinds of nodes: graph_nodes INSTANTIATE KINDS, with INSTANTIATE the number
// of the step that makes the executable graph and KINDS any of
//
//   k     a kernel
//   c     a copy
//   s     a set
//   a     memory allocated, set, freed
//   h     a host function
//   e     an external event recorded, then awaited
//   g     a graph of two kernels
//   w     a loop that runs its kernel three times
//   0     a kernel under a condition that does not hold
//   l     the executable graph is made of a clone of the graph
//   m     a graph within: a kernel, a set and a copy, captured
//   p     the first kernel gets another shape after the first launch
//   x, X  killed at the end of that step: at once, after a second
//
// Nine steps, each ends in cudaDeviceSynchronize.
#include <signal.h>

#include "tests/programs/hazard.h"

enum { kSteps = 9, kLaunches = 2 };

static cudaStream_t g_stream;
static cudaEvent_t g_event;
static void* g_memory;
static char g_host[4096];
static int g_host_calls;

static void CUDART_CB host_function(void* count) { ++*(int*)count; }

static void capture_one(char kind) {
  void* scratch = NULL;
  switch (kind) {
    case 'k': hazard_launch(1, g_stream); break;
    case 'c':
      hazard_check(
          cudaMemcpyAsync(g_memory, g_host, sizeof g_host, cudaMemcpyHostToDevice, g_stream),
          "copy");
      break;
    case 's': hazard_check(cudaMemsetAsync(g_memory, 1, 1024, g_stream), "set"); break;
    case 'a':
      hazard_check(cudaMallocAsync(&scratch, 2048, g_stream), "cudaMallocAsync");
      hazard_check(cudaMemsetAsync(scratch, 2, 2048, g_stream), "set");
      hazard_check(cudaFreeAsync(scratch, g_stream), "cudaFreeAsync");
      break;
    case 'h':
      hazard_check(cudaLaunchHostFunc(g_stream, host_function, &g_host_calls), "host function");
      break;
    case 'e':
      hazard_check(cudaEventRecordWithFlags(g_event, g_stream, cudaEventRecordExternal), "record");
      hazard_check(cudaStreamWaitEvent(g_stream, g_event, cudaEventWaitExternal), "wait");
      break;
    default: break;
  }
}

static void add_kernels(cudaGraph_t graph, int count) {
  static void* pointer = NULL;
  static void* arguments[1] = {&pointer};
  struct cudaKernelNodeParams kernel = {0};
  kernel.func = (void*)(size_t)&hazard_kernel;
  kernel.gridDim.x = kernel.gridDim.y = kernel.gridDim.z = 1;
  kernel.blockDim.x = 96, kernel.blockDim.y = kernel.blockDim.z = 1;
  kernel.kernelParams = arguments;
  cudaGraphNode_t node;
  for (int i = 0; i < count; ++i) {
    hazard_check(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel), "add kernel");
  }
}

static void add_one(cudaGraph_t graph, char kind) {
  cudaGraphNode_t node;
  if (kind == 'g') {
    cudaGraph_t child = NULL;
    hazard_check(cudaGraphCreate(&child, 0), "create child");
    add_kernels(child, 2);
    hazard_check(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), "add child");
    hazard_check(cudaGraphDestroy(child), "destroy child");
  }
  if (kind == 'm') {
    cudaGraph_t child = NULL;
    hazard_check(cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeGlobal), "begin capture");
    capture_one('k');
    capture_one('s');
    capture_one('c');
    hazard_check(cudaStreamEndCapture(g_stream, &child), "end capture");
    hazard_check(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child), "add child");
    hazard_check(cudaGraphDestroy(child), "destroy child");
  }
  if (kind == 'w' || kind == '0') {
    cudaGraphConditionalHandle handle;
    struct cudaGraphNodeParams params;
    memset(&params, 0, sizeof params);
    hazard_check(cudaGraphConditionalHandleCreate(&handle, graph, kind == 'w' ? 3 : 0,
                                                  cudaGraphCondAssignDefault),
                 "create handle");
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = kind == 'w' ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
    params.conditional.size = 1;
    hazard_check(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params), "add condition");
    add_kernels(params.conditional.phGraph_out[0], 1);
  }
}

static cudaGraph_t make_graph(const char* kinds) {
  cudaGraph_t graph = NULL;
  hazard_check(cudaStreamBeginCapture(g_stream, cudaStreamCaptureModeGlobal), "begin capture");
  for (const char* kind = kinds; *kind != '\0'; ++kind) capture_one(*kind);
  hazard_check(cudaStreamEndCapture(g_stream, &graph), "end capture");
  for (const char* kind = kinds; *kind != '\0'; ++kind) add_one(graph, *kind);
  return graph;
}

static void change_first_kernel(cudaGraphExec_t exec, cudaGraph_t graph) {
  struct cudaKernelNodeParams kernel = {0};
  cudaGraphNode_t nodes[16];
  size_t count = 16;
  hazard_check(cudaGraphGetNodes(graph, nodes, &count), "nodes");
  kernel.func = (void*)(size_t)&hazard_kernel;
  kernel.gridDim.x = 5, kernel.gridDim.y = kernel.gridDim.z = 1;
  kernel.blockDim.x = 32, kernel.blockDim.y = kernel.blockDim.z = 1;
  hazard_check(cudaGraphExecKernelNodeSetParams(exec, nodes[0], &kernel), "set parameters");
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int when = atoi(arguments[1]);
  const char* const kinds = arguments[2];
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  int launches = 0;
  hazard_register_kernel();
  hazard_check(cudaStreamCreateWithFlags(&g_stream, cudaStreamNonBlocking), "stream");
  hazard_check(cudaEventCreateWithFlags(&g_event, cudaEventDisableTiming), "event");
  hazard_check(cudaMalloc(&g_memory, sizeof g_host), "cudaMalloc");
  for (int step = 0; step < kSteps; ++step) {
    if (step == when) {
      graph = make_graph(kinds);
      if (strchr(kinds, 'l') != NULL) {
        cudaGraph_t clone = NULL;
        hazard_check(cudaGraphClone(&clone, graph), "clone");
        hazard_check(cudaGraphDestroy(graph), "destroy graph");
        graph = clone;
      }
      hazard_check(cudaGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
    }
    for (int i = 0; exec != NULL && i < kLaunches; ++i) {
      hazard_check(cudaGraphLaunch(exec, g_stream), "launch graph");
      if (launches++ == 0 && strchr(kinds, 'p') != NULL) change_first_kernel(exec, graph);
    }
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (step != when) continue;
    if (strchr(kinds, 'X') != NULL) usleep(1200000);
    if (strpbrk(kinds, "xX") != NULL) kill(getpid(), SIGKILL);
  }
  printf("%d graph launches, %d host functions\n", launches, g_host_calls);
  return 0;
}
