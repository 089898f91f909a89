// SPDX-License-Identifier: Apache-2.0
// Hazard: exec ends the program without an exit. What was recorded before must be there, the
// program that follows must run as without us, and after an exec that fails recording goes on.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/programs/hazard.h"

static const char* own_path;

static int shell_after_work(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(3, 5);
  execl("/bin/sh", "sh", "-c", "echo from sh; exit 3", (char*)NULL);
  return 91;
}

static int at_after_work(int argc, char** argv) {
  (void)argc, (void)argv;
  char* arguments[] = {(char*)"sh", (char*)"-c", (char*)"echo from sh; exit 3", NULL};
  char* environment[] = {NULL};
  hazard_steps(3, 5);
  if (execveat(AT_FDCWD, "/nonexistent/program", arguments, environment, 0) != -1) return 90;
  printf("exec failed with errno %d\n", errno);
  fflush(stdout);
  execveat(AT_FDCWD, "/bin/sh", arguments, environment, 0);
  return 91;
}

static int self_after_work(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(3, 5);
  execl(own_path, own_path, "second", (char*)NULL);
  return 91;
}

static int second(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 3);
  printf("second program\n");
  return 4;
}

static int fails(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(3, 5);
  execl("/nonexistent/program", "program", (char*)NULL);
  printf("exec failed with errno %d\n", errno);
  hazard_steps(3, 5);
  return 5;
}

static atomic_int stops;

static void* work_until_stopped(void* unused) {
  (void)unused;
  while (!stops) hazard_steps(5, 20);
  return NULL;
}

// Another thread goes on meanwhile.
static int fails_beside(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  hazard_steps(1, 1);
  pthread_create(&thread, NULL, work_until_stopped, NULL);
  for (int i = 0; i < 40; ++i) {
    execl("/nonexistent/program", "program", (char*)NULL);
    usleep(5000);
  }
  stops = 1;
  pthread_join(thread, NULL);
  return 5;
}

// Until it is killed.
static int fails_and_goes_on(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(1, 1);
  execl("/nonexistent/program", "program", (char*)NULL);
  for (int i = 0; i < 3000; ++i) {
    hazard_steps(1, 1);
    usleep(20000);
  }
  return 91;
}

static int bare_environment(int argc, char** argv) {
  (void)argc, (void)argv;
  char* arguments[] = {(char*)"env", NULL};
  char* environment[] = {(char*)"ONLY=this", NULL};
  hazard_steps(3, 5);
  execve("/usr/bin/env", arguments, environment);
  return 91;
}

static void* exec_in_thread(void* unused) {
  (void)unused;
  execl("/bin/sh", "sh", "-c", "echo from sh; exit 6", (char*)NULL);
  return NULL;
}

static int from_thread(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  hazard_steps(3, 5);
  pthread_create(&thread, NULL, exec_in_thread, NULL);
  pthread_join(thread, NULL);
  return 91;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"shell", shell_after_work},
      {"at", at_after_work},
      {"self", self_after_work},
      {"second", second},
      {"fails", fails},
      {"fails_beside", fails_beside},
      {"fails_and_goes_on", fails_and_goes_on},
      {"environment", bare_environment},
      {"thread", from_thread},
  };
  own_path = argv[0];
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
