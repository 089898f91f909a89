// SPDX-License-Identifier: Apache-2.0
// Hazard: another interposer. hazard_next.c wraps a function of hazard_base.c by dlsym(RTLD_NEXT),
// which looks behind the library that asks: an interposed dlsym that asks in its place finds the
// wrapper itself, and the program recurses until its stack is gone.
#include "tests/programs/hazard.h"

int hazard_value(void);

int main(void) {
  hazard_steps(2, 5);
  printf("value %d\n", hazard_value());
  return 0;
}
