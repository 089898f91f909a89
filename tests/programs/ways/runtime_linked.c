// SPDX-License-Identifier: Apache-2.0
// The runtime's functions as a program names them: of the shared library, or of the static one.
#include "registration.h"
#define CALL(function) function
#include "runtime_work.h"

int main(void) { return ways_work(); }
