// SPDX-License-Identifier: Apache-2.0
// Pairs of malloc and free in each step, by CPU time: prints nanoseconds per pair for each step.
// usage: heap_cost STEPS PAIRS BYTES
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

// As long a lifetime as most blocks have: some later blocks come and go before.
static double pairs(long count, size_t bytes) {
  enum { kLive = 64 };
  void* live[kLive] = {0};
  const double begin = cpu_ns();
  for (long i = 0; i < count; ++i) {
    void** const slot = &live[i % kLive];
    free(*slot);
    *slot = malloc(bytes);
    *(volatile char*)*slot = 1;
  }
  const double ns = (cpu_ns() - begin) / (double)count;
  for (int i = 0; i < kLive; ++i) free(live[i]);
  return ns;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void (*step)(void);
  *(void**)&step = dlsym(RTLD_DEFAULT, "gpuprof_step");
  if (!step) return 3;
  pairs(atol(argv[2]), (size_t)atol(argv[3]));
  for (long i = atol(argv[1]); i > 0; --i) {
    printf("%.3f\n", pairs(atol(argv[2]), (size_t)atol(argv[3])));
    step();
  }
  return 0;
}
