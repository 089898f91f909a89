// SPDX-License-Identifier: Apache-2.0
// Hazard: CUDA is called before our constructor has run (from the constructor of a library that
// comes earlier in the order) and after our destructor (hazard_early.c, and an atexit handler
// here).
#include "tests/programs/hazard.h"

void* hazard_early_memory(void);

static void launch_late(void) {
  hazard_launch(2, NULL);
  printf("launched in atexit\n");
  fflush(stdout);
}

int main(void) {
  atexit(launch_late);
  printf("memory from a constructor: %s\n", hazard_early_memory() != NULL ? "yes" : "no");
  hazard_steps(2, 5);
  return 0;
}
