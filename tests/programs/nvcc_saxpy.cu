// SPDX-License-Identifier: Apache-2.0
// What nvcc really emits, on the shared runtime: <<<>>>, a device variable, occupancy, an explicit
// launch. Built only where nvcc is. On the simulator the kernel does not compute, so what is
// checked is what the host sees: errors, and bytes that copies moved.
#include <cstdio>
#include <cstring>

__device__ float scale[4];

__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i] * scale[0];
}

template <typename T>
__global__ void fill(T* data, T value, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = value;
}

static bool check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "nvcc_saxpy: %s: %s\n", what, cudaGetErrorString(error));
  return false;
}

int main() {
  constexpr int kCount = 1024;
  const float factors[4] = {1, 2, 3, 4};
  float back[4] = {};
  float host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
  float* x = nullptr;
  float* y = nullptr;
  cudaStream_t stream = nullptr;
  int blocks = 0;
  bool good =
      check(cudaMalloc(&x, sizeof host), "cudaMalloc") &&
      check(cudaMalloc(&y, sizeof host), "cudaMalloc") &&
      check(cudaStreamCreate(&stream), "cudaStreamCreate") &&
      check(cudaMemcpyToSymbol(scale, factors, sizeof factors), "cudaMemcpyToSymbol") &&
      check(cudaMemcpyFromSymbol(back, scale, sizeof back), "cudaMemcpyFromSymbol") &&
      check(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy") &&
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, saxpy, 256, 0), "occupancy");
  saxpy<<<kCount / 256, 256, 0, stream>>>(kCount, 2.0f, x, y);
  good = check(cudaGetLastError(), "saxpy") && good;
  fill<float><<<1, 128>>>(y, 1.0f, kCount);
  good = check(cudaGetLastError(), "fill") && good;
  int n = kCount;
  float a = 0.5f;
  void* args[] = {&n, &a, &x, &y};
  good = check(cudaLaunchKernel(reinterpret_cast<const void*>(&saxpy), dim3(4), dim3(256), args, 0,
                                stream),
               "cudaLaunchKernel") &&
         check(cudaDeviceSynchronize(), "cudaDeviceSynchronize") && good;
  good = check(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy") && good;
  good =
      good && host[1000] == 1000.0f && std::memcmp(back, factors, sizeof back) == 0 && blocks > 0;
  std::printf("nvcc_saxpy: %s\n", good ? "good" : "bad");
  return good ? 0 : 1;
}
