// SPDX-License-Identifier: Apache-2.0
// A program linked with the driver.
#define CALL(symbol, name, version) symbol
#include "driver_work.h"

int main(void) { return ways_work(); }
