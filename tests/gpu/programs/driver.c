// SPDX-License-Identifier: Apache-2.0
// The same counts as ways.cu, by the driver API. usage: driver WAY MODULE STEPS
// WAY: linked (built with -DLINKED), dlsym, or ask (cuGetProcAddress). MODULE: ways.cu's kernels as
// PTX.
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef cuGetProcAddress
typedef CUresult (*Ask)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static const char* g_way = "";

static void* look_up(const char* symbol, const char* name, int version) {
  static void* library = NULL;
  void* found = NULL;
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library && strcmp(g_way, "dlsym") == 0) found = dlsym(library, symbol);
  if (library && strcmp(g_way, "ask") == 0) {
    CUdriverProcAddressQueryResult status;
    const Ask ask = (Ask)dlsym(library, "cuGetProcAddress_v2");
    if (!ask || ask(name, &found, version, 0, &status) != CUDA_SUCCESS) found = NULL;
  }
  if (!found) {
    fprintf(stderr, "driver: %s is not found by way \"%s\"\n", symbol, g_way);
    exit(1);
  }
  return found;
}

#ifdef LINKED
#define CALL(symbol, name, version) symbol
#else
#define CALL(symbol, name, version) ((__typeof__(&symbol))look_up(#symbol, name, version))
#endif

static void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "driver: %s: error %d\n", what, (int)result);
  exit(1);
}
#define DO(symbol, name, version, ...) check(CALL(symbol, name, version)(__VA_ARGS__), #symbol)

static void launch(CUfunction kernel, CUstream stream, int count, void** arguments) {
  DO(cuLaunchKernel, "cuLaunchKernel", 4000, kernel, count / 256, 1, 1, 256, 1, 1, 0, stream,
     arguments, NULL);
}

// Whether cuGetProcAddress answers with the address that the symbol has.
static int answers_with_symbols(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  CUdriverProcAddressQueryResult status;
  void* found = NULL;
  const Ask ask = library ? (Ask)dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (!ask || ask("cuLaunchKernel", &found, 4000, 0, &status) != CUDA_SUCCESS) return 0;
  return found == dlsym(library, "cuLaunchKernel");
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  g_way = argv[1];
  const int steps = atoi(argv[3]);
  int count = 1 << 20;
  const size_t bytes = (size_t)count * sizeof(float);
  float factor = 1.5f;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction scale, add;
  CUstream stream;
  CUdeviceptr a, b;
  void* host;
  DO(cuInit, "cuInit", 2000, 0);
  DO(cuDeviceGet, "cuDeviceGet", 2000, &device, 0);
  DO(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, &context, device);
  DO(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, context);

  FILE* const file = fopen(argv[2], "rb");
  static char text[1 << 20];
  if (!file || fread(text, 1, sizeof text - 1, file) == 0) return 2;
  fclose(file);
  DO(cuModuleLoadData, "cuModuleLoadData", 2000, &module, text);
  DO(cuModuleGetFunction, "cuModuleGetFunction", 2000, &scale, module, "scale");
  DO(cuModuleGetFunction, "cuModuleGetFunction", 2000, &add, module, "add");
  DO(cuStreamCreate, "cuStreamCreate", 2000, &stream, CU_STREAM_NON_BLOCKING);
  DO(cuMemAllocHost_v2, "cuMemAllocHost", 3020, &host, bytes);
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &a, bytes);
  DO(cuMemAlloc_v2, "cuMemAlloc", 3020, &b, bytes);
  memset(host, 0, bytes);
  for (int step = 0; step < steps; ++step) {
    void* scale_arguments[] = {&a, &count, &factor};
    void* add_arguments[] = {&b, &b, &count};
    DO(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, a, host, bytes, stream);
    DO(cuMemsetD8Async, "cuMemsetD8Async", 3020, b, 0, bytes, stream);
    for (int i = 0; i < 5; ++i) {
      launch(scale, stream, count, scale_arguments);
      launch(add, stream, count, add_arguments);
    }
    DO(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, host, a, bytes, stream);
    DO(cuCtxSynchronize, "cuCtxSynchronize", 2000);
  }
  printf(
      "{\"kernels\": {\"scale\": %d, \"add\": %d}, \"copies\": %d, \"sets\": %d, \"syncs\": %d, "
      "\"same_addresses\": %s}\n",
      5 * steps, 5 * steps, 2 * steps, steps, steps, answers_with_symbols() ? "true" : "false");
  return 0;
}
