// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime of version RUNTIME that says which calls reach it. As NVIDIA's it knows the
// kernels that were registered with it alone, and hands out module handles of its own.
#include <stdio.h>

#define SAY(...) (printf("  runtime %d: ", RUNTIME), printf(__VA_ARGS__), fflush(stdout))

static const void* kernels[64];
static int kernel_count;
static int version = RUNTIME;
static void* module = &version;

void** __cudaRegisterFatBinary(void* binary) {
  (void)binary;
  return &module;
}
void __cudaRegisterFatBinaryEnd(void** handle) { (void)handle; }
void __cudaUnregisterFatBinary(void** handle) {
  SAY("unregister, module of runtime %d\n", **(int**)handle);
}
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, void* thread, void* block, void* block_size,
                            void* grid_size, int* warp_size) {
  (void)device, (void)threads, (void)thread, (void)block, (void)block_size, (void)grid_size;
  (void)warp_size;
  SAY("register %s, module of runtime %d\n", name, **(int**)handle);
  if (kernel_count < 64) kernels[kernel_count++] = host;
}
int cudaMalloc(void** memory, size_t bytes) {
  *memory = kernels;
  SAY("cudaMalloc %zu\n", bytes);
  return 0;
}
int cudaLaunchKernel(const void* host, unsigned long long grid_xy, unsigned grid_z,
                     unsigned long long block_xy, unsigned block_z, void** arguments, size_t shared,
                     void* stream) {
  (void)grid_xy, (void)grid_z, (void)block_xy, (void)block_z, (void)arguments, (void)shared;
  (void)stream;
  int known = 0;
  for (int i = 0; i < kernel_count; ++i) known |= kernels[i] == host;
  SAY("launch %s\n", known ? "of its kernel" : "of a kernel it does not know");
  return known ? 0 : 98;
}
int cudaDeviceSynchronize(void) {
  SAY("wait\n");
  return 0;
}
int cudaGetLastError(void) {
  SAY("cudaGetLastError\n");
  return 0;
}
