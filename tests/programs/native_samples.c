// SPDX-License-Identifier: Apache-2.0
// Steps in which the host computes (in spin_here) and waits in calls that a signal would end early,
// on two threads that call CUDA. A third one calls CUDA with SIGURG kept out and computes (in
// spin_apart). Prints how many of those calls there were and how many ended early, how often a
// handler of SIGURG of its own was called, whether one was pending for the third thread, and
// whether there is a handler in a child forked in the middle, and at the end. usage: native_samples
// STEPS [handler|ignore|outlived]     outlived: in another thread; the main one ends before
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

__attribute__((noinline)) static int run(int steps) {
  const int epoll = epoll_create1(0);
  const char* in_child = "";
  pthread_t threads[2];
  volatile double sum = 0;
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

// Goes on when the main thread has ended.
static void* run_alone(void* steps) {
  char path[64], line[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
  for (int tries = 0; tries < 10000 && !strstr(line, ") Z "); ++tries) {
    FILE* const file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) exit(2);
    fclose(file);
    usleep(1000);
  }
  exit(run(*(int*)steps));
}

int main(int argc, char** argv) {
  static int steps = 14;
  pthread_t thread;
  const char* const how = argc > 2 ? argv[2] : "";
  if (argc > 1) steps = atoi(argv[1]);
  if (strcmp(how, "handler") == 0) signal(SIGURG, on_urgent);
  if (strcmp(how, "ignore") == 0) signal(SIGURG, SIG_IGN);
  if (strcmp(how, "outlived") != 0) return run(steps);
  pthread_create(&thread, NULL, run_alone, &steps);
  pthread_exit(NULL);
}
