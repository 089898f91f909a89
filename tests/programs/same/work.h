// SPDX-License-Identifier: Apache-2.0
// The same GPU work for a program that is linked with libcudart and for one that opens it (and, in
// ctypes_way.py, for one in Python): their traces must not differ. Functions come as pointers.
#pragma once

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

struct same_functions {
  const void* (*find_kernel)(const char*);
  cudaError_t (*malloc_)(void**, size_t);
  cudaError_t (*free_)(void*);
  cudaError_t (*stream_create)(cudaStream_t*);
  cudaError_t (*stream_synchronize)(cudaStream_t);
  cudaError_t (*device_synchronize)(void);
  cudaError_t (*copy)(void*, const void*, size_t, enum cudaMemcpyKind);
  cudaError_t (*set)(void*, int, size_t, cudaStream_t);
  cudaError_t (*launch)(const void*, dim3, dim3, void**, size_t, cudaStream_t);
};

static int same_work(const struct same_functions* f) {
  static char host[4096];
  void *memory = NULL, *pointer = NULL, *arguments[1] = {&pointer};
  cudaStream_t stream = NULL;
  int errors = 0;
  errors += f->malloc_(&memory, sizeof host) != cudaSuccess;
  errors += f->stream_create(&stream) != cudaSuccess;
  for (unsigned step = 0; step < 5; ++step) {
    const dim3 grid = {step + 1, 2, 1}, block = {64, 1, 1};
    errors += f->copy(memory, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess;
    errors += f->set(memory, (int)step, 1024, stream) != cudaSuccess;
    for (int i = 0; i < 10; ++i) {
      const void* kernel = f->find_kernel(i % 2 == 0 ? "_Z4evenPf" : "_Z3oddPf");
      errors += f->launch(kernel, grid, block, arguments, 0, stream) != cudaSuccess;
    }
    errors += f->stream_synchronize(stream) != cudaSuccess;
    errors += f->copy(host, memory, sizeof host / 2, cudaMemcpyDeviceToHost) != cudaSuccess;
    errors += f->device_synchronize() != cudaSuccess;
  }
  errors += f->free_(memory) != cudaSuccess;
  printf("%d errors\n", errors);
  return errors;
}
