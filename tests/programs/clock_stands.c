// SPDX-License-Identifier: Apache-2.0
// Preloaded with the library: all clocks of libc stand still, as under libfaketime with a fixed
// date.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  (void)clock;
  now->tv_sec = 1577836800;
  now->tv_nsec = 0;
  return 0;
}
