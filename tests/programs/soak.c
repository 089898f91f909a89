// SPDX-License-Identifier: Apache-2.0
// Works until it is told to end: steps of 2 ms with launches, copies and allocations, every second
// a child and a program, every five seconds a thread (for each of which the simulated CUDA keeps
// 350 bytes). What else grows in it, or stays open, was not its own: tests/bench/soak.py.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>

#include "tests/programs/hazard.h"

extern char** environ;

static volatile sig_atomic_t stop = 0;
static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

static void* launch_once(void* unused) {
  (void)unused;
  hazard_launch(5, NULL);
  return NULL;
}

static void start_others(int with_thread) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) exit(0);
  waitpid(child, &status, 0);
  char* arguments[] = {(char*)"true", NULL};
  if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0)
    waitpid(child, &status, 0);
  pthread_t thread;
  if (with_thread && pthread_create(&thread, NULL, launch_once, NULL) == 0)
    pthread_join(thread, NULL);
}

int main(void) {
  signal(SIGTERM, on_term);
  hazard_register_kernel();
  char data[4096] = "";
  for (int step = 0; !stop; ++step) {
    void* memory = NULL;
    hazard_check(cudaMalloc(&memory, sizeof data), "cudaMalloc");
    hazard_launch(30, NULL);
    hazard_check(cudaMemcpy(memory, data, sizeof data, cudaMemcpyHostToDevice), "cudaMemcpy");
    hazard_check(cudaFree(memory), "cudaFree");
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    usleep(1500);
    if (step % 500 == 0) start_others(step % 2500 == 0);
  }
  return 0;
}
