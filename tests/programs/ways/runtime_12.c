// SPDX-License-Identifier: Apache-2.0
// Functions of the runtime as CUDA 12 declares them; today's headers know only what became of them.
// runtime_12 12.6|12.8: which of them there are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* Stream;
int cudaStreamCreateWithFlags(Stream*, unsigned flags);
int cudaMalloc(void**, size_t);
int cudaMallocHost(void**, size_t);
int cudaMallocManaged(void**, size_t, unsigned flags);
int cudaMemAdvise(const void*, size_t, int advice, int device);
int cudaMemPrefetchAsync(const void*, size_t, int device, Stream);
int cudaMemcpyAsync(void*, const void*, size_t, int kind, Stream);
int cudaMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count, void* attributes,
                         size_t* indices, size_t attribute_count, size_t* failed, Stream);
int cudaDeviceSynchronize(void);

static void check(int error, const char* what) {
  if (error == 0) return;
  printf("%s: error %d\n", what, error);
  exit(90);
}

int main(int count, char** arguments) {
  enum { kBytes = 4096 };
  Stream stream = NULL;
  void *device = NULL, *host = NULL, *managed = NULL;
  const int batches = count > 1 && strcmp(arguments[1], "12.8") >= 0;
  check(cudaStreamCreateWithFlags(&stream, 1), "cudaStreamCreateWithFlags");
  check(cudaMalloc(&device, 2 * kBytes), "cudaMalloc");
  check(cudaMallocHost(&host, 2 * kBytes), "cudaMallocHost");
  check(cudaMallocManaged(&managed, kBytes, 1), "cudaMallocManaged");
  check(cudaMemAdvise(managed, kBytes, 1, 0), "cudaMemAdvise");
  check(cudaMemPrefetchAsync(managed, kBytes, 0, stream), "cudaMemPrefetchAsync");
  check(cudaMemcpyAsync(device, host, kBytes, 1, stream), "cudaMemcpyAsync");
  if (batches) {
    void* to[] = {device, (char*)device + kBytes};
    void* from[] = {host, (char*)host + kBytes};
    size_t sizes[] = {kBytes, kBytes / 2}, indices[] = {0}, failed = 0;
    int attributes[8] = {1};
    for (int i = 0; i < 5; ++i) {
      check(cudaMemcpyBatchAsync(to, from, sizes, 2, attributes, indices, 1, &failed, stream),
            "cudaMemcpyBatchAsync");
    }
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return 0;
}
