// SPDX-License-Identifier: Apache-2.0
// Steps in which the host computes (in spin_here) and waits in calls that a signal would end early,
// on two threads that call CUDA. Prints how many of those calls ended early, how often a handler of
// SIGURG of its own was called, and whether there is a handler at the end.
// usage: native_samples STEPS [handler|ignore]
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include "cuda_runtime.h"

static atomic_int g_ended_early, g_handled, g_over;

static void on_urgent(int number) {
  (void)number;
  atomic_fetch_add(&g_handled, 1);
}

__attribute__((noipa)) static double spin_here(double seconds) {
  struct timespec begun, now;
  double sum = 0;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  do {
    for (int i = 1; i < 20000; ++i) sum += 1.0 / i;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((double)(now.tv_sec - begun.tv_sec) + 1e-9 * (double)(now.tv_nsec - begun.tv_nsec) <
           seconds);
  return sum;
}

static void note(int result) {
  if (result < 0 && errno == EINTR) atomic_fetch_add(&g_ended_early, 1);
}

__attribute__((noinline)) static void wait_here(int epoll) {
  const struct timespec time = {0, 2000000};
  struct timeval brief = {0, 2000};
  struct epoll_event event;
  note(poll(NULL, 0, 2));
  note(nanosleep(&time, NULL));
  note(select(0, NULL, NULL, NULL, &brief));
  note(epoll_wait(epoll, &event, 1, 2));
}

static void* other(void* unused) {
  const int epoll = epoll_create1(0);
  cudaDeviceSynchronize();
  while (!atomic_load(&g_over)) {
    cudaFree(0);
    wait_here(epoll);
  }
  return unused;
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 14;
  const int epoll = epoll_create1(0);
  pthread_t thread;
  struct sigaction action;
  volatile double sum = 0;
  if (argc > 2) signal(SIGURG, strcmp(argv[2], "handler") == 0 ? on_urgent : SIG_IGN);
  pthread_create(&thread, NULL, other, NULL);
  for (int i = 0; i < steps; ++i) {
    cudaDeviceSynchronize();
    cudaFree(0);
    sum += spin_here(0.04);
    wait_here(epoll);
  }
  atomic_store(&g_over, 1);
  pthread_join(thread, NULL);
  sigaction(SIGURG, NULL, &action);
  printf("early %d handled %d handler %s\n", atomic_load(&g_ended_early), atomic_load(&g_handled),
         action.sa_handler == SIG_DFL   ? "default"
         : action.sa_handler == SIG_IGN ? "ignored"
                                        : "own");
  return sum > 0 ? 0 : 1;
}
