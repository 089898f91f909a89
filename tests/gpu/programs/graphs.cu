// SPDX-License-Identifier: Apache-2.0
// CUDA graphs before, inside and across a window. usage: graphs CAPTURE INSTANTIATE UPDATE DESTROY
// STEPS: the steps in which each happens (-1: never). A step launches the graph twice (three
// kernels, a set, a copy) and ends in a device synchronization. Prints how many launches it made.
#include <cstdio>
#include <cstdlib>

extern "C" __global__ void graph_kernel(float* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += 1;
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "graphs: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

static cudaGraph_t capture(cudaStream_t stream, float* data, float* host, int count) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  check(cudaMemsetAsync(data, 0, count * sizeof(float), stream), "cudaMemsetAsync");
  for (int i = 0; i < 3; ++i) graph_kernel<<<count / 256, 256, 0, stream>>>(data, count);
  check(cudaMemcpyAsync(host, data, count * sizeof(float), cudaMemcpyDeviceToHost, stream), "copy");
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  return graph;
}

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const int at_capture = std::atoi(argv[1]), at_instantiate = std::atoi(argv[2]),
            at_update = std::atoi(argv[3]);
  const int at_destroy = std::atoi(argv[4]), steps = std::atoi(argv[5]);
  const int count = 1 << 16;
  float *data = nullptr, *host = nullptr;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  int launches = 0;
  check(cudaMalloc(&data, count * sizeof(float)), "cudaMalloc");
  check(cudaMallocHost(&host, count * sizeof(float)), "cudaMallocHost");
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  for (int step = 0; step < steps; ++step) {
    if (step == at_capture) graph = capture(stream, data, host, count);
    if (step == at_instantiate)
      check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    if (step == at_update) {
      cudaGraphExecUpdateResultInfo result{};
      cudaGraph_t other = capture(stream, data, host, count);
      check(cudaGraphExecUpdate(exec, other, &result), "cudaGraphExecUpdate");
      check(cudaGraphDestroy(other), "cudaGraphDestroy");
    }
    for (int i = 0; exec && i < 2; ++i, ++launches)
      check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (step == at_destroy) {
      check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
      exec = nullptr;
    }
  }
  std::printf("{\"launches\": %d, \"kernels_per_launch\": 3}\n", launches);
  return 0;
}
