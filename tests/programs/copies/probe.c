// SPDX-License-Identifier: Apache-2.0
// Looks functions up that may not be there, among everybody's, among its own, and in the libraries
// that it opens first, and calls them.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static void call(const char* place, void* handle, const char* name) {
  void* memory = NULL;
  int (*const function)(void**, size_t) = (int (*)(void**, size_t))dlsym(handle, name);
  printf("%s: %s %s", place, name, function ? "is there\n" : "is not there\n");
  fflush(stdout);
  if (function) printf("  %d\n", function(&memory, 64));
}

int main(int count, char** arguments) {
  static const char* const names[] = {"cudaMalloc", "ncclCommGrow"};
  for (int i = 1; i < count; ++i) {
    void* const handle = dlopen(arguments[i], RTLD_NOW | RTLD_GLOBAL);
    if (!handle) return puts(dlerror()), 90;
    for (int k = 0; k < 2; ++k) call(arguments[i], handle, names[k]);
  }
  for (int k = 0; k < 2; ++k) {
    call("everybody's", RTLD_DEFAULT, names[k]);
    call("its own", dlopen(NULL, RTLD_LAZY), names[k]);
  }
  return 0;
}
