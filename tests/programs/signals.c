// SPDX-License-Identifier: Apache-2.0
// Hazard: signals. Handlers, masks and dispositions are the program's; no signal of ours may
// interrupt its system calls, and none of its own may break a hook.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "tests/programs/hazard.h"

static volatile sig_atomic_t count = 0;

static void count_signal(int signal) {
  (void)signal;
  ++count;
}

static void handle(int number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;  // no SA_RESTART: an interrupted call shows
  sigaction(number, &action, NULL);
}

static int own_handler(int argc, char** argv) {
  (void)argc, (void)argv;
  handle(SIGINT, count_signal);
  hazard_steps(2, 5);
  raise(SIGINT);
  hazard_steps(2, 5);
  raise(SIGINT);
  printf("SIGINT handled %d times\n", (int)count);
  return 0;
}

static int interrupted_read(int argc, char** argv) {
  (void)argc, (void)argv;
  int ends[2];
  char byte;
  if (pipe(ends) != 0) return 91;
  handle(SIGALRM, count_signal);
  hazard_steps(2, 5);
  struct itimerval timer = {{0, 0}, {0, 100000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  ssize_t got = read(ends[0], &byte, 1);
  printf("read: %d, errno %d, signals %d\n", (int)got, errno, (int)count);
  return 0;
}

// Nothing of ours may wake these: a second and more goes by, so that periodic work would show.
static int undisturbed_waits(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  int quiet = 0;
  for (int i = 0; i < 6; ++i) {
    quiet += poll(NULL, 0, 200) == 0;
    struct timespec pause = {0, 50000000};
    quiet += nanosleep(&pause, NULL) == 0;
  }
  printf("undisturbed waits: %d\n", quiet);
  return 0;
}

static void read_environment(int signal) {
  (void)signal;
  count += getenv("PATH") != NULL;
}

static int storm(int argc, char** argv) {
  (void)argc, (void)argv;
  handle(SIGALRM, read_environment);
  struct itimerval timer = {{0, 500}, {0, 500}};
  struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  hazard_steps(100, 20);
  setitimer(ITIMER_REAL, &none, NULL);
  printf("signals came: %d\n", count > 0);
  return 0;
}

static void print_state(const char* when) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  printf("%s:", when);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL) printf(" %d is handled", number);
    if (sigismember(&mask, number) == 1) printf(" %d is blocked", number);
  }
  stack_t stack;
  sigaltstack(NULL, &stack);
  printf(" alternate stack %d\n", stack.ss_flags != SS_DISABLE);
}

static int state(int argc, char** argv) {
  (void)argc, (void)argv;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);
  handle(SIGUSR1, count_signal);
  print_state("before");
  hazard_steps(4, 5);
  print_state("after");
  return 0;
}

static int child_signal(int argc, char** argv) {
  (void)argc, (void)argv;
  handle(SIGCHLD, count_signal);
  hazard_steps(4, 5);
  printf("before: %d\n", (int)count);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(0);
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
  }
  hazard_steps(4, 5);
  printf("after: %d\n", (int)count);
  return 0;
}

static void leave(int signal) {
  (void)signal;
  exit(5);
}

static int exit_in_sigterm(int argc, char** argv) {
  (void)argc, (void)argv;
  handle(SIGTERM, leave);
  hazard_steps(4, 5);
  raise(SIGTERM);
  return 91;
}

// The signal must reach the program's threads: one that we started must not take it.
static int wait_for_signal(int argc, char** argv) {
  (void)argc, (void)argv;
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  hazard_steps(4, 5);
  pthread_sigmask(SIG_BLOCK, &mask, NULL);  // after the library has started its thread
  kill(getpid(), SIGUSR1);  // default action: ends the process if any thread takes it
  struct timespec limit = {5, 0};
  printf("sigtimedwait: %d\n", sigtimedwait(&mask, NULL, &limit));
  return 0;
}

static void end_quietly(int number) {
  (void)number;
  _exit(42);
}

// A stack of SIGSTKSZ as it long was, with nothing mapped below it.
static int small_alternate_stack(int argc, char** argv) {
  (void)argc, (void)argv;
  const size_t page = (size_t)getpagesize(), size = (8192 + page - 1) & ~(page - 1);
  char* memory = mmap(NULL, page + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack;
  struct sigaction action;
  memset(&stack, 0, sizeof stack);
  memset(&action, 0, sizeof action);
  hazard_steps(5, 4);
  if (memory == MAP_FAILED || mprotect(memory + page, size, PROT_READ | PROT_WRITE) != 0) return 90;
  stack.ss_sp = memory + page;
  stack.ss_size = size;
  if (sigaltstack(&stack, NULL) != 0) return 91;
  action.sa_handler = end_quietly;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return 92;
}

// A handler jumps out of a mark of steps that waits; another thread marks some afterwards.
static sigjmp_buf g_before;

static void jump_back(int signal) {
  (void)signal;
  siglongjmp(g_before, 1);
}

static void* mark_beside(void* unused) {
  hazard_steps(20, 2);
  printf("20 steps beside\n");
  fflush(stdout);
  return unused;
}

static int jumps_out_of_mark(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t thread;
  signal(SIGALRM, jump_back);
  alarm(1);
  if (sigsetjmp(g_before, 1) == 0) hazard_steps(10, 2);
  alarm(0);
  pthread_create(&thread, NULL, mark_beside, NULL);
  pthread_join(thread, NULL);
  return 3;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"small_alternate_stack", small_alternate_stack},
      {"handler", own_handler},
      {"read", interrupted_read},
      {"quiet", undisturbed_waits},
      {"storm", storm},
      {"state", state},
      {"sigchld", child_signal},
      {"sigterm_exit", exit_in_sigterm},
      {"sigwait", wait_for_signal},
      {"jumps_out_of_mark", jumps_out_of_mark},
  };
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
