// SPDX-License-Identifier: Apache-2.0
// A plug-in that is linked with the shared runtime; deepbind.c opens it.
#include "registration.h"
#define CALL(function) function
#include "runtime_work.h"

int plugin_work(void);
int plugin_work(void) { return ways_work(); }
