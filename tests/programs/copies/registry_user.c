// SPDX-License-Identifier: Apache-2.0
// A library on top of the one with the registry, which it adds to while it is loaded.
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void** memory, size_t bytes);
void registry_add(void);
int registry_count(void);

__attribute__((constructor)) static void add_name(void) { registry_add(); }

int use_registry(void) {
  void* memory = NULL;
  const int failed = cudaMalloc(&memory, 64);
  printf("  %d in the registry\n", registry_count());
  fflush(stdout);
  return failed;
}
