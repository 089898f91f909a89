// SPDX-License-Identifier: Apache-2.0
// A library with a kernel and, in another of its files, a global object. The kernel is registered
// first; the object is there only once its own constructor has run. With OPENS the
// program is asked to open that library in between. With STARTS_CUDA a call of CUDA is made
// instead.
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void** memory, size_t bytes);
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, void* thread, void* block, void* block_size,
                            void* grid_size, int* warp_size);

#ifdef OPENS
void open_plugin(const char* file);
#endif

static int names;
static int* registry;

#ifdef STARTS_CUDA
__attribute__((constructor(1001))) static void start_cuda(void) {
  void* memory = NULL;
  printf("  constructor's cudaMalloc: %d\n", cudaMalloc(&memory, 64));
}
#else
static void kernel(void) {}

__attribute__((constructor(1001))) static void register_kernel(void) {
  void** const module = __cudaRegisterFatBinary(NULL);
  __cudaRegisterFunction(module, (const char*)kernel, "kernel", "kernel", -1, 0, 0, 0, 0, 0);
#ifdef OPENS
  open_plugin(OPENS);
#endif
}
#endif
__attribute__((constructor(1002))) static void construct_registry(void) { registry = &names; }

void registry_add(void) {
  if (!registry) puts("  the registry is used before it is constructed");
  if (registry) ++*registry;
}
int registry_count(void) { return registry ? *registry : -1; }
