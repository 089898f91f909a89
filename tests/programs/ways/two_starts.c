// SPDX-License-Identifier: Apache-2.0
// Two threads that make their first call of CUDA, the second 100 ms after the first, and a call
// each after that.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "cuda_runtime_api.h"

static void* work(void* unused) {
  void* memory = NULL;
  if (cudaMalloc(&memory, 256) != cudaSuccess || cudaFree(memory) != cudaSuccess) puts("failed");
  return unused;
}

int main(void) {
  const struct timespec pause = {0, 100000000};
  pthread_t first;
  pthread_create(&first, NULL, work, NULL);
  nanosleep(&pause, NULL);
  work(NULL);
  pthread_join(first, NULL);
  puts("done");
  return 0;
}
