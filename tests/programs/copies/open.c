// SPDX-License-Identifier: Apache-2.0
// Opens libraries, as an interpreter opens extension modules, and calls work() of those that have
// it: of each once it is open, or, after "all", once all are. "global FILE" opens one for
// everybody.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  int all = 0, worst = 0, opened = 0;
  void* handles[16];
  for (int i = 1; i < count && opened < 16; ++i) {
    int flags = RTLD_NOW | RTLD_LOCAL;
    if (strcmp(arguments[i], "all") == 0) {
      all = 1;
      continue;
    }
    if (strcmp(arguments[i], "global") == 0) {
      flags = RTLD_NOW | RTLD_GLOBAL;
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
  return worst != 0;
}
