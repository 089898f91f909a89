// SPDX-License-Identifier: Apache-2.0
// What the hazard programs share: a kernel, a bit of GPU work, and a choice of cases by argv[1].
// A program prints the same text and ends in the same way each time it runs, so that a run under
// the preloaded library can be compared with a bare one (tests/e2e/safety/test_hazards.py).
#pragma once

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
// What nvcc's generated code calls.
void** __cudaRegisterFatBinary(void* fat_binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, uint3* tid, uint3* bid,
                            dim3* block, dim3* grid, int* warp_size);
#ifdef __cplusplus
}
#endif

static inline long hazard_resident_kb(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) _exit(91);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void hazard_kernel(void) {}

static inline void hazard_register_kernel(void) {
  static struct {
    int magic, version;
    const void* data;
    void* unused;
  } fat_binary = {0x466243b1, 1, "", NULL};
  static char name[] = "_Z13hazard_kernelPf";
  static void** handle = NULL;
  if (handle != NULL) return;
  handle = __cudaRegisterFatBinary(&fat_binary);
  __cudaRegisterFunction(handle, (const char*)(size_t)&hazard_kernel, name, name, -1, NULL, NULL,
                         NULL, NULL, NULL);
  __cudaRegisterFatBinaryEnd(handle);
}

static inline void hazard_check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, (int)error);
  _exit(90);
}

// `count` launches on `stream`.
static inline void hazard_launch(int count, cudaStream_t stream) {
  dim3 grid = {2, 1, 1}, block = {64, 1, 1};
  void* arguments[1] = {NULL};
  void* pointer = NULL;
  arguments[0] = &pointer;
  for (int i = 0; i < count; ++i) {
    hazard_check(
        cudaLaunchKernel((const void*)(size_t)&hazard_kernel, grid, block, arguments, 0, stream),
        "cudaLaunchKernel");
  }
}

// `steps` steps of `launches` launches and one cudaDeviceSynchronize each, with an allocation
// around.
static inline void hazard_steps(int steps, int launches) {
  void* memory = NULL;
  hazard_register_kernel();
  hazard_check(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
  for (int i = 0; i < steps; ++i) {
    hazard_launch(launches, NULL);
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  hazard_check(cudaFree(memory), "cudaFree");
}

// Prints how a child ended.
static inline void hazard_print_status(const char* what, int status) {
  if (WIFEXITED(status)) printf("%s: exit %d\n", what, WEXITSTATUS(status));
  if (WIFSIGNALED(status)) printf("%s: signal %d\n", what, WTERMSIG(status));
  fflush(stdout);
}

struct hazard_case {
  const char* name;
  int (*run)(int argc, char** argv);
};

static inline int hazard_main(int argc, char** argv, const struct hazard_case* cases,
                              size_t count) {
  for (size_t i = 0; argc > 1 && i < count; ++i) {
    if (strcmp(cases[i].name, argv[1]) == 0) return cases[i].run(argc, argv);
  }
  fprintf(stderr, "usage: %s CASE, with CASE one of:", argv[0]);
  for (size_t i = 0; i < count; ++i) fprintf(stderr, " %s", cases[i].name);
  fprintf(stderr, "\n");
  return 2;
}
