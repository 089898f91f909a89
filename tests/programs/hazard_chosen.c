// SPDX-License-Identifier: Apache-2.0
// A function that is chosen when the library is loaded, by its environment. The dynamic linker asks
// before it has relocated the libraries that stand before this one.
#include <stdlib.h>

static int one(void) { return 1; }
static int two(void) { return 2; }

typedef int (*Function)(void);
static Function choose(void) { return getenv("HAZARD_CHOICE") != NULL ? one : two; }

int hazard_chosen(void) __attribute__((ifunc("choose")));

int hazard_call_chosen(void) { return hazard_chosen(); }
