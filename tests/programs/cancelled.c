// SPDX-License-Identifier: Apache-2.0
// A thread that has been cancelled ends at the next function of libc that waits, and at none of
// CUDA. Until then it may end the program, become another one, or be the first that calls CUDA.
#include <pthread.h>

#include "hazard.h"

static const char* ending;

static void* cancelled(void* unused) {
  hazard_steps(3, 2);
  pthread_cancel(pthread_self());
  if (strcmp(ending, "_exit") == 0) _exit(5);
  if (strcmp(ending, "exit") == 0) exit(5);
  if (strcmp(ending, "quick_exit") == 0) quick_exit(5);
  if (strcmp(ending, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 6", (char*)NULL);
  return unused;
}

static void* cancelled_first(void* unused) {
  pthread_cancel(pthread_self());
  hazard_steps(3, 2);
  pthread_testcancel();
  return unused;
}

static int run(void* (*thread)(void*)) {
  pthread_t other;
  void* result = NULL;
  pthread_create(&other, NULL, thread, NULL);
  pthread_join(other, &result);
  printf("the thread was %s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
  hazard_steps(2, 2);
  return 4;
}

static int ends(int argc, char** argv) {
  (void)argc;
  ending = argv[1];
  return run(cancelled);
}

static int begins(int argc, char** argv) {
  (void)argc, (void)argv;
  return run(cancelled_first);
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"_exit", ends}, {"exit", ends}, {"quick_exit", ends}, {"exec", ends}, {"start", begins}};
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
