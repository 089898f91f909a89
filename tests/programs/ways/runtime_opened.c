// SPDX-License-Identifier: Apache-2.0
// The runtime opened by a program that is not linked with it, its functions looked up by name.
#include <dlfcn.h>

#include "registration.h"

static void* look_up(const char* name);
#define CALL(function) ((__typeof__(&function))look_up(#function))
#include "runtime_work.h"

static void* look_up(const char* name) {
  static void* library = NULL;
  if (library == NULL) library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  void* const found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    printf("%s: not found\n", name);
    exit(91);
  }
  return found;
}

int main(void) { return ways_work(); }
