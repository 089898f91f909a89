// SPDX-License-Identifier: Apache-2.0
// The driver opened by name, its functions by dlsym (argument "dlsym"), or as Triton and CUDA's own
// runtimes get them: dlsym of cuGetProcAddress_v2 alone, all else through it ("ask";
// "ask_per_thread": for per-thread default streams; "ask_old": through the form of before CUDA 12).
#include <dlfcn.h>
#include <string.h>

static void* look_up(const char* symbol, const char* name, int version);
#define CALL(symbol, name, version) ((__typeof__(&symbol))look_up(#symbol, name, version))
#include "driver_work.h"

#undef cuGetProcAddress
typedef CUresult (*Ask)(const char*, void**, int, cuuint64_t);
typedef CUresult (*AskV2)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static const char* g_way = "";

static void* ask(void* library, const char* name, int version) {
  void* found = NULL;
  if (strcmp(g_way, "ask_old") == 0) {
    const Ask get = (Ask)dlsym(library, "cuGetProcAddress");
    return get != NULL && get(name, &found, version, 0) == 0 ? found : NULL;
  }
  const AskV2 get = (AskV2)dlsym(library, "cuGetProcAddress_v2");
  const cuuint64_t flags = strcmp(g_way, "ask_per_thread") == 0 ? 2 : 0;
  // A per-thread form exists since CUDA 7, whatever the age of the function.
  if (flags != 0 && version < 7000) version = 7000;
  CUdriverProcAddressQueryResult status;
  return get != NULL && get(name, &found, version, flags, &status) == 0 ? found : NULL;
}

static void* look_up(const char* symbol, const char* name, int version) {
  static void* library = NULL;
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* found = NULL;
  if (library != NULL && strcmp(g_way, "dlsym") == 0) found = dlsym(library, symbol);
  if (library != NULL && strncmp(g_way, "ask", 3) == 0) found = ask(library, name, version);
  if (found == NULL) {
    printf("%s: not found\n", symbol);
    exit(91);
  }
  return found;
}

int main(int argc, char** argv) {
  g_way = argc > 1 ? argv[1] : "";
  return ways_work();
}
