// SPDX-License-Identifier: Apache-2.0
// The wrapped library of next.c.
int hazard_value(void) { return 41; }
