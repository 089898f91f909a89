// SPDX-License-Identifier: Apache-2.0
// Calls what hazard_hooks.c and hazard_quota.c replace.
#include <dlfcn.h>

#include "hazard.h"

int main(void) {
  const char* answer = getenv("HAZARD_ANSWER");
  printf("%s\n", answer != NULL ? answer : "no answer");
  printf("opened: %s\n", dlopen("libm.so.6", RTLD_NOW) != NULL ? "yes" : "no");
  hazard_steps(5, 2);
  void* memory = NULL;
  printf("8 MiB: error %d\n", (int)cudaMalloc(&memory, 8 << 20));
  fflush(stdout);
  _exit(3);
}
