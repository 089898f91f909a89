// SPDX-License-Identifier: Apache-2.0
// Hazard: children. A child must not write its parent's records again, hold a lock of a thread that
// is gone, or be disturbed; the parent's wait must see its own children and no others.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>

#include "tests/programs/hazard.h"

extern char** environ;

static void wait_for(const char* what, pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) {
    printf("%s: waitpid: errno %d\n", what, errno);
    return;
  }
  hazard_print_status(what, status);
}

static int plain(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  pid_t child = fork();
  if (child == 0) _exit(3);
  wait_for("child", child);
  hazard_steps(2, 5);
  return 0;
}

static int child_uses_gpu(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  pid_t child = fork();
  if (child == 0) {  // CUDA does not outlive fork: the child gets its error, and we must not hang
    void* memory = NULL;
    printf("child: CUDA error %d\n", (int)cudaMalloc(&memory, 1 << 20));
    exit(4);
  }
  wait_for("child", child);
  hazard_steps(2, 5);
  return 0;
}

static int only_child_uses_gpu(int argc, char** argv) {
  (void)argc, (void)argv;
  pid_t child = fork();
  if (child == 0) {
    hazard_steps(3, 2);
    printf("child worked\n");
    exit(4);
  }
  wait_for("child", child);
  return 0;
}

static int child_exits_by_exit(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  pid_t child = fork();
  if (child == 0) exit(5);  // runs the parent's exit handlers in the child
  wait_for("child", child);
  hazard_steps(1, 5);
  return 0;
}

// Each level forks first and uses the GPU afterwards, as CUDA wants it.
static void fork_down(int level) {
  if (level == 0) return;
  pid_t child = fork();
  if (child == 0) {
    fork_down(level - 1);
    exit(level);
  }
  wait_for("level", child);
  hazard_steps(1, level);
}

static int levels(int argc, char** argv) {
  (void)argc, (void)argv;
  fork_down(3);
  return 0;
}

static int many_children(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(1, 5);
  int sum = 0;
  for (int i = 0; i < 50; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(i);
    int status = 0;
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
  }
  printf("sum %d\n", sum);
  return 0;
}

// What a child has open, by name, sockets and pipes apart.
static void print_open_files(void) {
  char path[64], name[256];
  for (int file = 0; file < 2048; ++file) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    if (length <= 0 || name[0] != '/') continue;
    name[length] = '\0';
    printf("child has %d open: %s\n", file, name);
  }
}

static int open_files_of_children(int argc, char** argv) {
  (void)argc, (void)argv;
  for (int i = 0; i < 10; ++i) {
    hazard_steps(1, 2);
    usleep(20000);  // a window's file is opened
    pid_t child = fork();
    if (child == 0) {
      print_open_files();
      exit(3);
    }
    wait_for("child", child);
  }
  return 0;
}

static int stop = 0;
static void* launch_until_stopped(void* unused) {
  (void)unused;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) hazard_launch(1, NULL);
  return NULL;
}

static int while_threads_launch(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t threads[4];
  hazard_steps(1, 1);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, launch_until_stopped, NULL);
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(getenv("HOME") == NULL ? 6 : 7);
    wait_for("child", child);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return 0;
}

static int by_vfork(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  pid_t child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "echo from sh; exit 8", (char*)NULL);
    _exit(91);
  }
  wait_for("vfork and exec", child);
  child = vfork();
  if (child == 0) {
    execl("/nonexistent/program", "program", (char*)NULL);
    _exit(9);
  }
  wait_for("vfork and failed exec", child);
  hazard_steps(2, 5);
  return 0;
}

static int by_spawn(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  char* arguments[] = {(char*)"sh", (char*)"-c", (char*)"echo spawned; exit 10", NULL};
  pid_t child = 0;
  int error = posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
  wait_for("spawned", child);
  printf("posix_spawn: %d\n", error);
  printf("posix_spawn of nothing: %d\n",
         posix_spawn(&child, "/nonexistent/program", NULL, NULL, arguments, environ));
  hazard_steps(2, 5);
  return 0;
}

static int by_system(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  hazard_print_status("system", system("echo from system; exit 11"));
  FILE* pipe = popen("echo through a pipe", "r");
  char line[64] = "";
  if (pipe != NULL && fgets(line, sizeof line, pipe) != NULL) printf("popen: %s", line);
  hazard_print_status("pclose", pclose(pipe));
  hazard_steps(2, 5);
  return 0;
}

// A helper process or thread of the profiler must not show up here.
static int wait_for_any(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  pid_t child = fork();
  if (child == 0) _exit(12);
  int status = 0;
  printf("own child first: %d\n", waitpid(-1, &status, 0) == child);
  hazard_print_status("child", status);
  int none = (int)waitpid(-1, &status, 0);
  printf("then none: %d, errno %d\n", none, errno);
  none = (int)waitpid(-1, &status, __WALL | WNOHANG);
  printf("none, of any kind: %d, errno %d\n", none, errno);
  hazard_steps(2, 5);
  return 0;
}

static int as_daemon(int argc, char** argv) {
  (void)argc, (void)argv;
  int ends[2];
  char word[16] = "";
  if (pipe(ends) != 0) return 91;
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    if (chdir("/") != 0) _exit(91);
    dup2(ends[1], 0);
    close_range(1, ~0U, 0);
    hazard_steps(2, 3);
    if (write(0, "done", 5) != 5) _exit(91);
    exit(13);
  }
  wait_for("first child", child);
  close(ends[1]);
  if (read(ends[0], word, sizeof word) < 0) return 91;
  printf("daemon: %s\n", word);
  while (read(ends[0], word, sizeof word) > 0) {
  }  // until the daemon has ended
  return 0;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"fork", plain},
      {"fork_gpu", child_uses_gpu},
      {"fork_first", only_child_uses_gpu},
      {"fork_exit", child_exits_by_exit},
      {"fork_levels", levels},
      {"fork_many", many_children},
      {"fork_files", open_files_of_children},
      {"fork_threads", while_threads_launch},
      {"vfork", by_vfork},
      {"posix_spawn", by_spawn},
      {"system", by_system},
      {"wait_any", wait_for_any},
      {"daemon", as_daemon},
  };
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
