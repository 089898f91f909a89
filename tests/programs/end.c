// SPDX-License-Identifier: Apache-2.0
// Hazard: every way a process ends. The exit code or signal must stay as it is, atexit handlers
// must run (or not) as before, and what was recorded must be in a dump or in what the process left
// behind.
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "tests/programs/hazard.h"

static void say_atexit(void) {
  printf("atexit handler\n");
  fflush(stdout);
}

static void say_quick(void) {
  printf("at_quick_exit handler\n");
  fflush(stdout);
}

static void work(void) {
  atexit(say_atexit);
  at_quick_exit(say_quick);
  hazard_steps(5, 4);
  printf("worked\n");
  fflush(stdout);
}

static int by_return(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  return 3;
}

static int by_exit(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  exit(4);
}

static int by_exit_unsynced(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  hazard_launch(7, NULL);  // still running on the device when the process ends
  exit(4);
}

static int by_underscore_exit(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  _exit(5);
}

static int by_capital_exit(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  _Exit(6);
}

static int by_quick_exit(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  quick_exit(7);
}

static int by_abort(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  abort();
}

static int by_sigterm(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  raise(SIGTERM);
  return 91;
}

static int by_sigkill(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  raise(SIGKILL);
  return 91;
}

static int by_segv(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  int* volatile nowhere = (int*)8;  // volatile: the compiler does not see where it points
  *nowhere = 1;
  return 91;
}

static void exit_now(int signal) {
  (void)signal;
  _exit(8);
}

static int in_handler(int argc, char** argv) {
  (void)argc, (void)argv;
  work();
  signal(SIGUSR1, exit_now);
  raise(SIGUSR1);
  return 91;
}

static void* thread_exits(void* unused) {
  (void)unused;
  exit(9);
}

static int from_thread(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  work();
  pthread_create(&thread, NULL, thread_exits, NULL);
  pause();
  return 91;
}

static void* thread_goes_on(void* unused) {
  (void)unused;
  usleep(20000);
  hazard_launch(2, NULL);
  printf("last thread\n");
  fflush(stdout);
  return NULL;
}

static int main_thread_first(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  work();
  pthread_create(&thread, NULL, thread_goes_on, NULL);
  pthread_exit(NULL);
}

static void* sleep_a_second(void* unused) {
  sleep(1);
  return unused;
}

// By the system call alone: no exit handler runs, and glibc does not count this thread as ended.
static int raw_exit(int argc, char** argv) {
  pthread_t thread;
  (void)argv;
  work();
  if (argc > 2) pthread_create(&thread, NULL, sleep_a_second, NULL);
  fflush(stdout);
  syscall(SYS_exit, 7);
  return 1;
}

// The code of the process is that of the thread that ends last.
static int raw_exit_outlived(int argc, char** argv) {
  (void)argc;
  return raw_exit(3, argv);
}

static void* launch_for_ever(void* unused) {
  (void)unused;
  for (;;) {
    hazard_launch(1, NULL);
    usleep(100);
  }
  return NULL;
}

static int while_others_launch(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  work();
  for (int i = 0; i < 4; ++i) pthread_create(&thread, NULL, launch_for_ever, NULL);
  usleep(20000);
  exit(10);
}

static void exit_handler_works(void) {
  hazard_steps(1, 3);
  printf("worked in atexit\n");
  fflush(stdout);
}

static int work_in_atexit(int argc, char** argv) {
  (void)argc, (void)argv;
  atexit(exit_handler_works);
  work();
  return 11;
}

// Another thread ends the program as well, or replaces it, while this one is about it.
static void* ends_soon(void* way) {
  usleep(200000);
  if (strcmp(way, "exec") == 0) execl("/bin/true", "true", (char*)NULL);
  _exit(3);
}

static int beside(int argc, char** argv) {
  pthread_t thread;
  if (argc < 3) return 91;
  hazard_steps(5, 4);
  pthread_create(&thread, NULL, ends_soon, argv[2]);
  return 3;
}

// The first thread ends the program while another one marks steps.
static void* marks_steps(void* unused) {
  hazard_steps(10, 4);
  return unused;
}

static int while_another_marks(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  pthread_create(&thread, NULL, marks_steps, NULL);
  usleep(1500000);
  return 3;
}

// A signal handler ends the program within a mark, once there is a file of the pattern argv[2].
// Another thread launches meanwhile.
static volatile sig_atomic_t g_in_mark, g_is_there;

static void exit_in_mark(int signal) {
  (void)signal;
  if (g_in_mark && g_is_there) exit(3);
}

static void* launch_and_look(void* pattern) {
  glob_t found;
  for (;;) {
    hazard_launch(1, NULL);
    usleep(100);
    if (!g_is_there && glob(pattern, 0, NULL, &found) == 0) g_is_there = 1;
  }
  return NULL;
}

static int handler_exits_in_mark(int argc, char** argv) {
  pthread_t thread;
  sigset_t alarms;
  const struct itimerval each_ms = {{0, 1000}, {0, 1000}};
  if (argc < 3) return 91;
  hazard_steps(1, 1);
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, NULL);
  pthread_create(&thread, NULL, launch_and_look, argv[2]);
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  signal(SIGALRM, exit_in_mark);
  setitimer(ITIMER_REAL, &each_ms, NULL);
  for (int i = 0; i < 1000; ++i) {
    hazard_launch(1, NULL);
    g_in_mark = 1;
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    g_in_mark = 0;
  }
  return 90;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"return", by_return},
      {"exit", by_exit},
      {"exit_unsynced", by_exit_unsynced},
      {"_exit", by_underscore_exit},
      {"beside", beside},
      {"while_another_marks", while_another_marks},
      {"handler_exits_in_mark", handler_exits_in_mark},
      {"_Exit", by_capital_exit},
      {"quick_exit", by_quick_exit},
      {"abort", by_abort},
      {"sigterm", by_sigterm},
      {"sigkill", by_sigkill},
      {"segv", by_segv},
      {"exit_in_handler", in_handler},
      {"exit_from_thread", from_thread},
      {"main_thread_first", main_thread_first},
      {"raw_exit", raw_exit},
      {"raw_exit_outlived", raw_exit_outlived},
      {"while_others_launch", while_others_launch},
      {"work_in_atexit", work_in_atexit},
  };
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
