// SPDX-License-Identifier: Apache-2.0
// A plug-in whose own library has a getenv (hazard_hooks.c), for own_functions.c.
#include <stdlib.h>

const char* plugin_answer(void) { return getenv("HAZARD_ANSWER"); }
