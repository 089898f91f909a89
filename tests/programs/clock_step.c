// SPDX-License-Identifier: Apache-2.0
// Preloaded with the library: the wall clock is set an hour forward 0.2 s after the start, and two
// hours back after 0.4 s. No other clock changes.
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static double begun;
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result != 0 || clock != CLOCK_REALTIME) return result;
  if (begun == 0) begun = seconds(CLOCK_MONOTONIC);
  const double age = seconds(CLOCK_MONOTONIC) - begun;
  if (age > 0.4)
    now->tv_sec -= 3600;
  else if (age > 0.2)
    now->tv_sec += 3600;
  return 0;
}
