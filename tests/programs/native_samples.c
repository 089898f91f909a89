// SPDX-License-Identifier: Apache-2.0
// Steps in which the host computes (in spin_here) and waits in calls that a signal would end early,
// on two threads that call CUDA. A third one calls CUDA with SIGURG kept out and computes (in
// spin_apart). Prints how many of those calls there were and how many ended early, how often a
// handler of SIGURG of its own was called, whether one was pending for the third thread, and
// whether there is a handler in a child forked in the middle, and at the end. usage: native_samples
// STEPS [handler|ignore]
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_runtime.h"

static atomic_int g_calls, g_ended_early, g_handled, g_pending, g_over;

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
  atomic_fetch_add(&g_calls, 1);
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

__attribute__((noipa)) static double spin_apart(double seconds) { return spin_here(seconds); }

static void* apart(void* unused) {
  sigset_t urgent, pending;
  volatile double sum = 0;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_BLOCK, &urgent, NULL);
  while (!atomic_load(&g_over)) {
    cudaFree(0);
    sum += spin_apart(0.01);
    sigpending(&pending);
    if (sigismember(&pending, SIGURG)) atomic_store(&g_pending, 1);
  }
  return sum > 0 ? unused : NULL;
}

static const char* handler_now(void) {
  struct sigaction action;
  sigaction(SIGURG, NULL, &action);
  return action.sa_handler == SIG_DFL   ? "default"
         : action.sa_handler == SIG_IGN ? "ignored"
                                        : "own";
}

static const char* handler_in_child(void) {
  const char* const answers[] = {"default", "ignored", "own"};
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    int answer = 0;
    while (strcmp(answers[answer], handler_now()) != 0) ++answer;
    _exit(answer);
  }
  waitpid(child, &status, 0);
  return answers[WEXITSTATUS(status)];
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 14;
  const int epoll = epoll_create1(0);
  const char* in_child = "";
  pthread_t threads[2];
  volatile double sum = 0;
  if (argc > 2) signal(SIGURG, strcmp(argv[2], "handler") == 0 ? on_urgent : SIG_IGN);
  pthread_create(&threads[0], NULL, other, NULL);
  pthread_create(&threads[1], NULL, apart, NULL);
  for (int i = 0; i < steps; ++i) {
    cudaDeviceSynchronize();
    cudaFree(0);
    sum += spin_here(0.04);
    wait_here(epoll);
    if (i == steps / 2) in_child = handler_in_child();
  }
  atomic_store(&g_over, 1);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("calls %d early %d handled %d pending %d child %s handler %s\n", atomic_load(&g_calls),
         atomic_load(&g_ended_early), atomic_load(&g_handled), atomic_load(&g_pending), in_child,
         handler_now());
  return sum > 0 ? 0 : 1;
}
