// SPDX-License-Identifier: Apache-2.0
// While another thread is within dlopen, which holds the loader's lock: the process ends, becomes
// another one, has a child of vfork that does, or ends in a signal handler. It uses CUDA before in
// the case `recorded` alone.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "hazard.h"

static void* open_stuck(void* path) {
  if (dlopen(path, RTLD_NOW) == NULL) fprintf(stderr, "%s\n", dlerror());
  return NULL;
}

static void end_in_handler(int number) {
  (void)number;
  _exit(42);
}

// Of the folder that the program is in.
static void* stuck_path(const char* program) {
  static char path[4096];
  snprintf(path, sizeof path, "%.*slibhazard_stuck.so", (int)(strrchr(program, '/') + 1 - program),
           program);
  return path;
}

static void begin(char** argv) {
  pthread_t other;
  pthread_create(&other, NULL, open_stuck, stuck_path(argv[0]));
  usleep(300000);
}

static int end(int argc, char** argv) {
  (void)argc;
  begin(argv);
  _exit(42);
}

static int end_recorded(int argc, char** argv) {
  hazard_steps(3, 2);
  return end(argc, argv);
}

static int exec(int argc, char** argv) {
  (void)argc;
  begin(argv);
  execl("/bin/sh", "sh", "-c", "exit 6", (char*)NULL);
  return 1;
}

static int vfork_exec(int argc, char** argv) {
  (void)argc;
  begin(argv);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 6", (char*)NULL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  hazard_print_status("child", status);
  _exit(7);
}

static int end_in_signal(int argc, char** argv) {
  (void)argc;
  signal(SIGALRM, end_in_handler);
  ualarm(300000, 0);
  open_stuck(stuck_path(argv[0]));
  return 1;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {{"_exit", end},
                                             {"exec", exec},
                                             {"vfork", vfork_exec},
                                             {"handler", end_in_signal},
                                             {"recorded", end_recorded}};
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
