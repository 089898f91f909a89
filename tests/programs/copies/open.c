// SPDX-License-Identifier: Apache-2.0
// Opens libraries, as an interpreter opens extension modules, and calls work() of those that have
// it: of each once it is open, or, after "all", once all are. "global FILE" opens one for
// everybody, "first FILE" one whose own libraries come first. A library
// may ask it for more. "look FILE" opens one for itself, and calls one function of it by its name
// at once and another one last.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void open_plugin(const char* file) {
  if (!dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)) puts(dlerror());
}

int main(int count, char** arguments) {
  int all = 0, worst = 0, opened = 0;
  void *handles[16], *looked = NULL;
  for (int i = 1; i < count && opened < 16; ++i) {
    int flags = RTLD_NOW | RTLD_LOCAL;
    if (strcmp(arguments[i], "all") == 0) {
      all = 1;
      continue;
    }
    if (strcmp(arguments[i], "look") == 0) {
      looked = dlopen(arguments[++i], RTLD_NOW | RTLD_LOCAL);
      if (!looked) return puts(dlerror()), 90;
      worst |= ((int (*)(void))dlsym(looked, "cudaDeviceSynchronize"))();
      continue;
    }
    if (strcmp(arguments[i], "global") == 0) {
      flags = RTLD_NOW | RTLD_GLOBAL;
      ++i;
    } else if (strcmp(arguments[i], "first") == 0) {
      flags |= RTLD_DEEPBIND;
      ++i;
    }
    void* const handle = dlopen(arguments[i], flags);
    if (!handle) return puts(dlerror()), 90;
    const char* const left = dlerror();
    if (left) printf("an error that is none: %s\n", left);
    int (*const work)(void) = (int (*)(void))dlsym(handle, "work");
    if (!all && work) worst |= work();
    handles[opened++] = handle;
  }
  for (int i = 0; all && i < opened; ++i) {
    int (*const work)(void) = (int (*)(void))dlsym(handles[i], "work");
    if (work) worst |= work();
  }
  void* memory = NULL;
  if (looked) worst |= ((int (*)(void**, size_t))dlsym(looked, "cudaMalloc"))(&memory, 256);
  return worst != 0;
}
