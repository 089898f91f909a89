// SPDX-License-Identifier: Apache-2.0
// Preloaded after the library: any program uses CUDA before its main, so that a session is live in
// it, whatever it is.
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

typedef int (*Main)(int, char**, char**);
typedef int (*Start)(Main, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);

static Main g_main;

static void use_cuda(void) {
  void* const cudart = dlopen("libcudart.so.13", RTLD_NOW);
  if (!cudart) return;
  int (*allocate)(void**, size_t) = (int (*)(void**, size_t))dlsym(cudart, "cudaMalloc");
  int (*set)(void*, int, size_t) = (int (*)(void*, int, size_t))dlsym(cudart, "cudaMemset");
  int (*release)(void*) = (int (*)(void*))dlsym(cudart, "cudaFree");
  void* memory = NULL;
  if (!allocate || !set || !release || allocate(&memory, 4096) != 0) return;
  set(memory, 0, 4096);
  release(memory);
}

static int main_after_cuda(int count, char** arguments, char** environment) {
  const int error = errno;
  use_cuda();
  errno = error;
  return g_main(count, arguments, environment);
}

int __libc_start_main(Main program, int count, char** arguments, void (*begin)(void),
                      void (*end)(void), void (*of_loader)(void), void* stack) {
  const Start start = (Start)dlsym(RTLD_NEXT, "__libc_start_main");
  g_main = program;
  return start(main_after_cuda, count, arguments, begin, end, of_loader, stack);
}
