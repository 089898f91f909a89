// SPDX-License-Identifier: Apache-2.0
// A program that has nothing to do with CUDA. Prints how many allocations were made before main(),
// and what the first dlerror() says.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// glibc's, whoever interposes the public names.
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);

static int g_allocations;

void* malloc(size_t size) {
  ++g_allocations;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  ++g_allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* block, size_t size) {
  ++g_allocations;
  return __libc_realloc(block, size);
}

int main(void) {
  const int before = g_allocations;
  const char* const error = dlerror();
  printf("%d allocations, error: %s\n", before, error ? error : "none");
  return 0;
}
