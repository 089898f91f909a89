// SPDX-License-Identifier: Apache-2.0
// Another preloaded library that limits GPU memory, as layers that share a GPU do: it has a dlsym
// of its own beside cudaMalloc, so that it also stands before who looks the function up.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
static const char kDlsymVersion[] = "GLIBC_2.2.5";
#else
static const char kDlsymVersion[] = "GLIBC_2.17";
#endif

typedef void* (*Lookup)(void*, const char*);
typedef cudaError_t (*Malloc)(void**, size_t);

static void* next(const char* name) {
  const Lookup lookup = (Lookup)(size_t)dlvsym(RTLD_NEXT, "dlsym", kDlsymVersion);
  return lookup(RTLD_NEXT, name);
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (bytes > 1 << 20) {
    printf("quota refuses\n");
    return cudaErrorMemoryAllocation;
  }
  return ((Malloc)(size_t)next("cudaMalloc"))(pointer, bytes);
}

void* dlsym(void* handle, const char* name) {
  if (strcmp(name, "cudaMalloc") == 0) return (void*)(size_t)&cudaMalloc;
  const Lookup lookup = (Lookup)(size_t)dlvsym(RTLD_NEXT, "dlsym", kDlsymVersion);
  return lookup(handle, name);
}
