// SPDX-License-Identifier: Apache-2.0
// Two threads that allocate and free, the first call of the second one 100 ms after that of the
// first. usage: two_starts [nvtx]     nvtx: the second makes a mark of NVTX before, and waits for
// the first to end after
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cuda_runtime_api.h"

static void* work(void* unused) {
  void* memory = NULL;
  if (cudaMalloc(&memory, 256) != cudaSuccess || cudaFree(memory) != cudaSuccess) puts("failed");
  return unused;
}

int main(int argc, char** argv) {
  const struct timespec pause = {0, 100000000};
  const int marks = argc > 1 && strcmp(argv[1], "nvtx") == 0;
  pthread_t first;
  if (marks) nvtxMarkA("begin");
  pthread_create(&first, NULL, work, NULL);
  nanosleep(&pause, NULL);
  if (!marks) work(NULL);
  pthread_join(first, NULL);
  if (marks) work(NULL);
  puts("done");
  return 0;
}
