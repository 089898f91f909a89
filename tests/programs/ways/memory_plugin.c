// SPDX-License-Identifier: Apache-2.0
// A plug-in that leaves nothing behind when it is closed; plugin_threads.c opens it.
#include <cuda_runtime_api.h>

int plugin_work(void);
int plugin_work(void) {
  void* memory = NULL;
  const int error = (int)cudaMalloc(&memory, 256) + (int)cudaMemset(memory, 0, 256);
  return error + (int)cudaFree(memory);
}
