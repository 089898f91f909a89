// SPDX-License-Identifier: Apache-2.0
// Hazard: the CUDA runtime comes by dlopen, in all the ways programs do it, and dlsym is not ours
// alone. This program is not linked with libcudart.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*launch_function)(const void*, unsigned long long, unsigned, unsigned long long,
                               unsigned, void**, size_t, void*);
typedef const void* (*register_function)(const char*);

static const char kLibrary[] = "libcudart.so.13";

// One launch by cudaLaunchKernel. dim3 goes in two registers: x and y, then z.
static int launch(void* library, int count) {
  register_function find = (register_function)(size_t)dlsym(library, "simcuda_register_kernel");
  launch_function call = (launch_function)(size_t)dlsym(library, "cudaLaunchKernel");
  int (*synchronize)(void) = (int (*)(void))(size_t)dlsym(library, "cudaDeviceSynchronize");
  int (*allocate)(void**, size_t) = (int (*)(void**, size_t))(size_t)dlsym(library, "cudaMalloc");
  int (*release)(void*) = (int (*)(void*))(size_t)dlsym(library, "cudaFree");
  if (!find || !call || !synchronize || !allocate || !release) return 91;
  const void* kernel = find("_Z14dynamic_kernelPf");
  void *memory = NULL, *pointer = NULL, *arguments[1] = {&pointer};
  int errors = allocate(&memory, 1 << 16) != 0;
  for (int i = 0; i < count; ++i) {
    errors += call(kernel, 2ull | 1ull << 32, 1, 64ull | 1ull << 32, 1, arguments, 0, NULL) != 0;
  }
  errors += synchronize() != 0;
  errors += release(memory) != 0;
  return errors;
}

static int open_and_launch(int flags, const char* what) {
  void* library = dlopen(kLibrary, flags);
  if (library == NULL) {
    printf("%s: cannot open: %s\n", what, dlerror());
    return 91;
  }
  printf("%s: %d errors\n", what, launch(library, 10));
  return 0;
}

// dlopen and dlclose again and again; libcudart may really leave and come back elsewhere.
static int repeat(void) {
  int errors = 0;
  for (int i = 0; i < 20; ++i) {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    struct link_map* map = NULL;
    if (library != NULL) dlinfo(library, RTLD_DI_LINKMAP, &map);
    void* const place = map != NULL ? (void*)map->l_addr : NULL;
    errors += library == NULL ? 100 : launch(library, 2);
    if (library != NULL) dlclose(library);
    // Next time it is elsewhere, where it was closed.
    if (place != NULL)
      mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  printf("20 times: %d errors\n", errors);
  return 0;
}

// What a program may rely on of dlsym itself.
static int semantics(void) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  dlerror();
  printf("no such name: %d\n", dlsym(library, "cudaNoSuchFunction") == NULL);
  const char* message = dlerror();
  printf("dlerror names it: %d\n",
         message != NULL && strstr(message, "cudaNoSuchFunction") != NULL);
  printf("dlerror is cleared: %d\n", dlerror() == NULL);
  printf("same address twice: %d\n", dlsym(library, "cudaMalloc") == dlsym(library, "cudaMalloc"));
  printf("not global: %d\n", dlsym(RTLD_DEFAULT, "cudaGetDeviceCount") == NULL);
  dlerror();
  printf("not the program's: %d\n", dlsym(dlopen(NULL, RTLD_NOW), "ncclGetUniqueId") == NULL);
  dlerror();
  printf("not anywhere: %d\n", dlsym(RTLD_DEFAULT, "ncclAllReduce") == NULL);
  message = dlerror();
  printf("dlerror names it: %d\n", message != NULL && strstr(message, "ncclAllReduce") != NULL);
  printf("in its version: %d\n", dlvsym(library, "cudaMalloc", "libcudart.so.13") != NULL);
  printf("in another's: %d\n", dlvsym(library, "cudaMalloc", "libcudart.so.12") == NULL);
  message = dlerror();
  printf("dlerror names it: %d\n", message != NULL && strstr(message, "libcudart.so.12") != NULL);
  printf("libc by default scope: %d\n", dlsym(RTLD_DEFAULT, "strlen") != NULL);
  printf("libc by next scope: %d\n", dlsym(RTLD_NEXT, "malloc") != NULL);
  printf("with a version: %d\n", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14") != NULL);
  printf("with a wrong version: %d\n", dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_9.99") == NULL);
  dlerror();
  void* again = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  printf("same handle: %d\n", again == library);
  printf("missing library: %d\n", dlopen("libnosuchlibrary.so.9", RTLD_NOW) == NULL);
  message = dlerror();
  printf("dlerror names it: %d\n", message != NULL && strstr(message, "libnosuchlibrary") != NULL);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "local") == 0) return open_and_launch(RTLD_NOW | RTLD_LOCAL, what);
  if (strcmp(what, "lazy") == 0) return open_and_launch(RTLD_LAZY | RTLD_LOCAL, what);
  if (strcmp(what, "global") == 0) return open_and_launch(RTLD_NOW | RTLD_GLOBAL, what);
  if (strcmp(what, "deepbind") == 0) return open_and_launch(RTLD_NOW | RTLD_DEEPBIND, what);
  if (strcmp(what, "repeat") == 0) return repeat();
  if (strcmp(what, "semantics") == 0) return semantics();
  fprintf(stderr, "usage: %s local|lazy|global|deepbind|repeat|semantics\n", argv[0]);
  return 2;
}
