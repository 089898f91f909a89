// SPDX-License-Identifier: Apache-2.0
// Opens the machine's CUDA driver or a libcupti and prints what it says, for gpuprof doctor: the
// command may be linked statically, and a static program cannot open them. Whatever they do to the
// process that opens them, they do to this one.
//
// gpuprof-probe driver          opened=0|1 init=CODE version=NUMBER devices=NUMBER
// gpuprof-probe cupti FILE...   a line for each: version=NUMBER, 0 where it cannot be opened
//
// Plain C, linked to nothing but glibc.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef GPUPROF_PROBE_OLD_GLIBC  // collector/base/glibc_compat.h, which is included, has the others
__asm__(".symver dlsym,dlsym@" GPUPROF_FIRST_GLIBC);
#endif

typedef int (*Start)(unsigned flags);
typedef int (*Number)(int* out);

// ISO C has no conversion from a pointer to an object; POSIX wants this one to work.
#define FIND(function, library, name) (*(void**)&(function) = dlsym(library, name))

static int look_at_driver(void) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  int init = -1, version = 0, devices = -1;
  if (driver) {
    Start start;
    Number version_of, count_of;
    FIND(start, driver, "cuInit");
    FIND(version_of, driver, "cuDriverGetVersion");
    FIND(count_of, driver, "cuDeviceGetCount");
    if (start) init = start(0);
    if (init != 0 || !version_of || version_of(&version) != 0) version = 0;
    if (init != 0 || !count_of || count_of(&devices) != 0) devices = -1;
  }
  printf("opened=%d init=%d version=%d devices=%d\n", driver != NULL, init, version, devices);
  return 0;
}

static int look_at_cupti(int count, char** files) {
  for (int i = 0; i < count; ++i) {
    void* const library = dlopen(files[i], RTLD_LAZY | RTLD_LOCAL);
    Number version_of = NULL;
    int version = 0;
    if (library) FIND(version_of, library, "cuptiGetVersion");
    if (version_of && version_of(&version) != 0) version = 0;
    printf("version=%d\n", version);
    fflush(stdout);
  }
  return 0;
}

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "driver") == 0) return look_at_driver();
  if (count > 2 && strcmp(arguments[1], "cupti") == 0)
    return look_at_cupti(count - 2, arguments + 2);
  fputs("usage: gpuprof-probe driver | gpuprof-probe cupti FILE...\n", stderr);
  return 2;
}
