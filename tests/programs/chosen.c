// SPDX-License-Identifier: Apache-2.0
// Hazard: getenv is called before the preloaded library is relocated (hazard_chosen.c).
#include "hazard.h"

int hazard_call_chosen(void);

int main(void) {
  printf("chosen: %d\n", hazard_call_chosen());
  hazard_steps(5, 2);
  return 3;
}
