// SPDX-License-Identifier: Apache-2.0
// What an extension module does with the CUDA runtime that it is linked to; two kernels, or
// none (NO_KERNELS).
#include <stddef.h>

void** __cudaRegisterFatBinary(void* binary);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, void* thread, void* block, void* block_size,
                            void* grid_size, int* warp_size);
int cudaMalloc(void** memory, size_t bytes);
int cudaLaunchKernel(const void* host, unsigned long long grid_xy, unsigned grid_z,
                     unsigned long long block_xy, unsigned block_z, void** arguments, size_t shared,
                     void* stream);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);

#ifdef NO_KERNELS
int work(void) {
  void* memory = NULL;
  return cudaMalloc(&memory, 2048) | cudaDeviceSynchronize();
}
#else
static void first(void) {}
static void second(int* unused) { (void)unused; }
static void** module;

__attribute__((constructor)) static void register_kernels(void) {
  module = __cudaRegisterFatBinary(NULL);
  __cudaRegisterFunction(module, (const char*)first, "first", "first", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(module, (const char*)second, "second", "second", -1, 0, 0, 0, 0, 0);
}
__attribute__((destructor)) static void unregister_kernels(void) {
  __cudaUnregisterFatBinary(module);
}

// As a framework's table of the functions that it loads, of which one may be replaced.
struct functions {
  int (*allocate)(void** memory, size_t bytes);
  int (*wait)(void);
};
static const struct functions constant = {cudaMalloc, cudaDeviceSynchronize};
static struct functions variable = {cudaMalloc, cudaDeviceSynchronize};
static const struct functions* volatile tables[] = {&constant, &variable};

int work(void) {
  void* memory = NULL;
  void* arguments[1] = {&memory};
  int worst = cudaMalloc(&memory, 4096);
  worst |= cudaLaunchKernel((const void*)first, 1, 1, 1, 1, arguments, 0, NULL);
  worst |= cudaLaunchKernel((const void*)second, 1, 1, 1, 1, arguments, 0, NULL);
  worst |= cudaDeviceSynchronize();
  for (int i = 0; i < 2; ++i) {
    worst |= tables[i]->allocate(&memory, 512);
    worst |= tables[i]->wait();
  }
  return worst | cudaGetLastError();
}
#endif
