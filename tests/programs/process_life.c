// SPDX-License-Identifier: Apache-2.0
// Hazard: a process that changes what it is: its root directory, its user, its namespaces; that
// asks for the preloaded library to be closed; or that has very many threads.
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "tests/programs/hazard.h"

// What the system answers, so that a run can be compared with a bare one.
static void print_result(const char* what, int result) {
  printf("%s: %d, errno %d\n", what, result, result == 0 ? 0 : errno);
  fflush(stdout);
}

// Its argument is the directory. Nothing of what was opened before can be opened by its path again.
static int changes_root(int argc, char** argv) {
  if (argc < 3) return 91;
  hazard_steps(2, 5);
  print_result("chroot", chroot(argv[2]));
  print_result("chdir", chdir("/"));
  hazard_steps(2, 5);
  return 3;
}

// glibc asks every thread of the process to change its user, too, by a signal. With an argument it
// waits for a file of that pattern before, so that there is one of ours.
static int changes_user(int argc, char** argv) {
  hazard_steps(2, 5);
  glob_t found = {.gl_pathc = 0};
  for (int i = 0; argc > 2 && i < 2000 && glob(argv[2], 0, NULL, &found) != 0; ++i) usleep(10000);
  print_result("setgroups", setgroups(0, NULL));
  print_result("setgid", setgid(54321));
  print_result("setuid", setuid(54321));
  printf("user %d %d, group %d\n", (int)getuid(), (int)geteuid(), (int)getgid());
  hazard_steps(2, 5);
  return 3;
}

static int changes_user_first(int argc, char** argv) {
  (void)argc, (void)argv;
  print_result("setgid", setgid(54321));
  print_result("setuid", setuid(54321));
  hazard_steps(4, 5);
  return 3;
}

// Refused in a process with threads: before the first call there are none.
static int enters_namespaces(int argc, char** argv) {
  (void)argc, (void)argv;
  print_result("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
  hazard_steps(4, 5);
  return 3;
}

// A child in namespaces of its own, with a process id of 1.
static int child_in_namespaces(int argc, char** argv) {
  (void)argc, (void)argv;
  print_result("unshare", unshare(CLONE_NEWUSER | CLONE_NEWPID));
  const pid_t child = fork();
  if (child == 0) {
    printf("child is %d\n", (int)getpid());
    fflush(stdout);
    hazard_steps(3, 5);
    exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  hazard_print_status("child", status);
  return 3;
}

// More often than anybody has opened it.
static int closes_us(int argc, char** argv) {
  (void)argc, (void)argv;
  const char* const path = getenv("LD_PRELOAD");
  hazard_steps(2, 5);
  for (int i = 0; path != NULL && i < 20; ++i) {
    void* const library = dlopen(strrchr(path, ':') ? strrchr(path, ':') + 1 : path, RTLD_LAZY);
    if (library == NULL) return 92;
    for (int again = 0; again < 3; ++again) dlclose(library);
  }
  hazard_steps(2, 5);
  return 3;
}

// A program that opens the library itself, and closes it: nothing is left that points into it.
static int opens_and_closes_us(int argc, char** argv) {
  if (argc < 3) return 91;
  for (int i = 0; i < 20; ++i) {
    void* const library = dlopen(argv[2], RTLD_NOW);
    if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 92;
    dlclose(library);
  }
  hazard_steps(4, 5);
  return 3;
}

static void* one_launch(void* argument) {
  (void)argument;
  hazard_launch(1, NULL);
  return NULL;
}

// A worker that imports its own libraries. One that waits for ever for the loader ends by the
// alarm.
static int children_load(int argc, char** argv) {
  (void)argc, (void)argv;
  int sum = 0;
  hazard_steps(1, 5);
  for (int i = 0; i < 20; ++i) {
    usleep(5000);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      _exit(dlopen("libanl.so.1", RTLD_NOW) ? 1 : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) sum += WEXITSTATUS(status);
  }
  printf("sum %d\n", sum);
  return 3;
}

static int ten_thousand_threads(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(1, 1);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  int started = 0;
  for (int i = 0; i < 10000; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &small, one_launch, NULL) != 0) break;
    started += pthread_join(thread, NULL) == 0;
  }
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  printf("%d threads\n", started);
  return 3;
}

// How many threads of the library's have the real-time policy of this one.
static int is_real_time(int argc, char** argv) {
  (void)argc, (void)argv;
  const struct sched_param priority = {.sched_priority = 1};
  print_result("sched_setscheduler", sched_setscheduler(0, SCHED_FIFO, &priority));
  hazard_steps(4, 5);
  int count = 0;
  glob_t found = {.gl_pathc = 0};
  if (glob("/proc/self/task/*/comm", 0, NULL, &found) != 0) return 91;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    char name[32] = "";
    FILE* file = fopen(found.gl_pathv[i], "r");
    if (file != NULL && fgets(name, sizeof name, file) != NULL && strcmp(name, "gpuprof\n") == 0) {
      count +=
          sched_getscheduler(atoi(found.gl_pathv[i] + strlen("/proc/self/task/"))) == SCHED_FIFO;
    }
    if (file != NULL) fclose(file);
  }
  globfree(&found);
  printf("%d threads\n", count);
  return 3;
}

static int first_errno(int argc, char** argv) {
  (void)argc, (void)argv;
  printf("errno %d\n", errno);
  return 3;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"chroot", changes_root},
      {"setuid", changes_user},
      {"setuid_first", changes_user_first},
      {"namespaces", enters_namespaces},
      {"child_in_namespaces", child_in_namespaces},
      {"closes_us", closes_us},
      {"opens_and_closes_us", opens_and_closes_us},
      {"threads", ten_thousand_threads},
      {"children_load", children_load},
      {"errno", first_errno},
      {"real_time", is_real_time},
  };
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
