// SPDX-License-Identifier: Apache-2.0
// Steps that make many calls, so that recording them costs a planned share of the time. A step ends
// with cudaDeviceSynchronize, and is filled up to its length by computing.
//   costly MS STEP_US [KIND=COUNT ...]    for MS milliseconds; of each kind so many a step:
//                                         launches, events, allocations, waits, operators;
//                                         depth: calls that launches are made below
// It prints how many steps it made, and the processor time of each, in microseconds.
#include <time.h>

#include "hazard.h"

void torch_like_operators(int count);

static double read_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double now_us(void) { return read_us(CLOCK_MONOTONIC); }

// Returns the depth; each has something left to do after the next one, so that none is a jump.
__attribute__((noinline)) static int launch_below(int depth, int launches) {
  if (depth == 0) {
    hazard_launch(launches, NULL);
    return 0;
  }
  const volatile int below = launch_below(depth - 1, launches);
  return below + 1;
}

static int count_of(int argc, char** argv, const char* kind, int otherwise) {
  const size_t length = strlen(kind);
  for (int i = 3; i < argc; ++i) {
    if (strncmp(argv[i], kind, length) == 0 && argv[i][length] == '=')
      return atoi(argv[i] + length + 1);
  }
  return otherwise;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  hazard_register_kernel();
  const int launches = count_of(argc, argv, "launches", 2);
  const int depth = count_of(argc, argv, "depth", 0);
  const int events = count_of(argc, argv, "events", 0);
  const int allocations = count_of(argc, argv, "allocations", 0);
  const int waits = count_of(argc, argv, "waits", 0);
  const int operators = count_of(argc, argv, "operators", 0);
  cudaEvent_t event = NULL;
  hazard_check(cudaEventCreate(&event), "cudaEventCreate");
  const double begin = now_us(), length = atof(argv[2]), used = read_us(CLOCK_THREAD_CPUTIME_ID);
  int steps = 0, below = 0;
  for (double step = begin; step < begin + 1000 * atof(argv[1]); step = now_us(), ++steps) {
    below += launch_below(depth, launches);
    for (int i = 0; i < events; ++i) hazard_check(cudaEventRecord(event, NULL), "cudaEventRecord");
    for (int i = 0; i < allocations; ++i) {
      void* memory = NULL;
      hazard_check(cudaMalloc(&memory, 64), "cudaMalloc");
      hazard_check(cudaFree(memory), "cudaFree");
    }
    for (int i = 0; i < waits; ++i)
      hazard_check(cudaEventSynchronize(event), "cudaEventSynchronize");
    if (operators > 0) torch_like_operators(operators);
    while (now_us() < step + length) {
    }
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  printf("%d steps of %.1f us\n", steps, (read_us(CLOCK_THREAD_CPUTIME_ID) - used) / steps);
  return below == steps * depth ? 0 : 1;
}
