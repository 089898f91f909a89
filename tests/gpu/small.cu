// SPDX-License-Identifier: Apache-2.0
// A small CUDA program with known counts: 100 steps, each a copy in, 10 launches of two kernels on two
// streams, a memset, a copy out and a device synchronization. Prints the wall time per step.
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void scale(float* data, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

__global__ void add(float* out, const float* in, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] += in[i];
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 100;
  const int count = 1 << 22;
  const size_t bytes = count * sizeof(float);
  float *host = nullptr, *a = nullptr, *b = nullptr;
  cudaStream_t streams[2];
  check(cudaMallocHost(&host, bytes), "cudaMallocHost");
  check(cudaMalloc(&a, bytes), "cudaMalloc");
  check(cudaMalloc(&b, bytes), "cudaMalloc");
  for (auto& stream : streams) check(cudaStreamCreate(&stream), "cudaStreamCreate");
  for (int i = 0; i < count; ++i) host[i] = 1;

  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    check(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, streams[0]), "copy in");
    check(cudaMemsetAsync(b, 0, bytes, streams[1]), "cudaMemsetAsync");
    for (int i = 0; i < 5; ++i) {
      scale<<<count / 256, 256, 0, streams[0]>>>(a, count, 1.5f);
      add<<<count / 256, 256, 0, streams[1]>>>(b, b, count);
    }
    check(cudaGetLastError(), "launch");
    check(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, streams[0]), "copy out");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  std::printf("ms_per_step %.4f\n", time.count() / steps);
  return 0;
}
