// SPDX-License-Identifier: Apache-2.0
// A CUDA program with known counts, for every way of reaching the runtime: STEPS steps, each a copy
// in, 10 launches of two kernels on two streams, a memset, a copy out and a device synchronization.
// With -DWAYS_PLUGIN a library with the same work in ways_main. Prints what it did as JSON; a
// second argument is the number of tiny launches between copy and synchronization, for what a
// launch costs.
#include <chrono>
#include <cstdio>
#include <cstdlib>

extern "C" __global__ void scale(float* data, int count, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

extern "C" __global__ void add(float* out, const float* in, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] += in[i];
}

extern "C" __global__ void tiny() {}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

extern "C" int ways_main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  const int extra = argc > 2 ? std::atoi(argv[2]) : 0;
  const int count = 1 << 20;
  const size_t bytes = count * sizeof(float);
  float *host = nullptr, *a = nullptr, *b = nullptr;
  cudaStream_t streams[2];
  check(cudaMallocHost(&host, bytes), "cudaMallocHost");
  check(cudaMalloc(&a, bytes), "cudaMalloc");
  check(cudaMalloc(&b, bytes), "cudaMalloc");
  for (auto& stream : streams) check(cudaStreamCreate(&stream), "cudaStreamCreate");
  for (int i = 0; i < count; ++i) host[i] = 1;

  double* const times = static_cast<double*>(std::malloc(sizeof(double) * (steps + 1)));
  for (int step = 0; step < steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    check(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, streams[0]), "copy in");
    check(cudaMemsetAsync(b, 0, bytes, streams[1]), "cudaMemsetAsync");
    for (int i = 0; i < 5; ++i) {
      scale<<<count / 256, 256, 0, streams[0]>>>(a, count, 1.5f);
      add<<<count / 256, 256, 0, streams[1]>>>(b, b, count);
    }
    for (int i = 0; i < extra; ++i) tiny<<<1, 32, 0, streams[0]>>>();
    check(cudaGetLastError(), "launch");
    check(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, streams[0]), "copy out");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    times[step] = time.count();
  }
  std::printf("{\"kernels\": {\"scale\": %d, \"add\": %d", 5 * steps, 5 * steps);
  if (extra) std::printf(", \"tiny\": %d", extra * steps);
  std::printf("}, \"copies\": %d, \"sets\": %d, \"syncs\": %d, \"step_ms\": [", 2 * steps, steps,
              steps);
  for (int step = 0; step < steps; ++step) std::printf("%s%.5f", step ? ", " : "", times[step]);
  std::printf("]}\n");
  return 0;
}

#ifndef WAYS_PLUGIN
int main(int argc, char** argv) { return ways_main(argc, argv); }
#endif
