// SPDX-License-Identifier: Apache-2.0
// Opens the machine's CUDA driver or a libcupti and prints what it says, for gpuprof doctor: the
// command may be linked statically, and a static program cannot open them. Whatever they do to the
// process that opens them, they do to this one.
//
// gpuprof-probe driver          opened=0|1 init=CODE version=NUMBER devices=NUMBER
// gpuprof-probe cupti FILE...   a line for each: opened=0|1 version=NUMBER, 0 where it does not say
//
// Plain C, linked to nothing but glibc.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef GPUPROF_PROBE_OLD_GLIBC
// The versions that every glibc has. Before 2.34 they are in libdl.so.2, which is linked for that.
#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
#endif
__asm__(".symver dlopen,dlopen@" FIRST_GLIBC);
__asm__(".symver dlsym,dlsym@" FIRST_GLIBC);
#endif

typedef int (*Start)(unsigned flags);
typedef int (*Number)(int* out);

// ISO C has no conversion from a pointer to an object; POSIX wants this one to work.
#define FIND(function, library, name) (*(void**)&(function) = dlsym(library, name))

struct driver {
  int opened, init, version, devices;
};

static struct driver open_driver(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  struct driver driver = {library != NULL, -1, 0, -1};
  if (!library) return driver;
  Start start;
  Number version_of, count_of;
  FIND(start, library, "cuInit");
  FIND(version_of, library, "cuDriverGetVersion");
  FIND(count_of, library, "cuDeviceGetCount");
  if (start) driver.init = start(0);
  if (driver.init != 0 || !version_of || version_of(&driver.version) != 0) driver.version = 0;
  if (driver.init != 0 || !count_of || count_of(&driver.devices) != 0) driver.devices = -1;
  return driver;
}

static int look_at_driver(void) {
  const struct driver driver = open_driver();
  printf("opened=%d init=%d version=%d devices=%d\n", driver.opened, driver.init, driver.version,
         driver.devices);
  return 0;
}

// CUPTI 13.2 does not return where the driver has no GPU (collector/cupti/cupti_api.h).
static int can_be_asked(void* cupti) {
  void *in_13_2, *since_13_3;
  FIND(in_13_2, cupti, "cuptiActivityRegisterCallbacks_v2");
  FIND(since_13_3, cupti, "cuptiGetTimestamp_v2");
  return !in_13_2 || since_13_3 || open_driver().devices > 0;
}

static int look_at_cupti(int count, char** files) {
  for (int i = 0; i < count; ++i) {
    void* const library = dlopen(files[i], RTLD_LAZY | RTLD_LOCAL);
    Number version_of = NULL;
    int version = 0;
    if (library && can_be_asked(library)) FIND(version_of, library, "cuptiGetVersion");
    if (version_of && version_of(&version) != 0) version = 0;
    printf("opened=%d version=%d\n", library != NULL, version);
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
