// SPDX-License-Identifier: Apache-2.0
// A library that uses CUDA in its constructor and destructor (early_late.c).
#include <cuda_runtime_api.h>
#include <stdio.h>

static void* memory = NULL;

void* hazard_early_memory(void) { return memory; }

__attribute__((constructor(101))) static void allocate(void) {
  if (cudaMalloc(&memory, 4096) != cudaSuccess) memory = NULL;
}

__attribute__((destructor(101))) static void release(void) {
  printf("freed in a destructor: %d\n", (int)cudaFree(memory));
  fflush(stdout);
}
