// SPDX-License-Identifier: Apache-2.0
// Built for another libc, or statically: whatever the preloaded library interposes must do what it
// does without the library. Prints one line a call. No CUDA.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) abort();
}
static void at_quick_exit_handler(void) { say("at_quick_exit\n"); }
static void at_exit_handler(void) { say("atexit\n"); }
static void* thread(void* argument) { return argument; }

static void become(const char* how, char* own) {
  char* arguments[] = {own, "print", NULL};
  if (!strcmp(how, "execl")) execl(own, own, "print", (char*)NULL);
  if (!strcmp(how, "execlp")) execlp(own, own, "print", (char*)NULL);
  if (!strcmp(how, "execle")) execle(own, own, "print", (char*)NULL, environ);
  if (!strcmp(how, "execv")) execv(own, arguments);
  if (!strcmp(how, "execvp")) execvp(own, arguments);
  if (!strcmp(how, "execvpe")) execvpe(own, arguments, environ);
  if (!strcmp(how, "execve")) execve(own, arguments, environ);
  if (!strcmp(how, "fexecve")) fexecve(open(own, O_RDONLY), arguments, environ);
  if (!strcmp(how, "missing"))
    printf("%d %d\n", execv("/no/such/program", arguments), errno == ENOENT);
  fflush(stdout);
  if (!strcmp(how, "_Exit")) _Exit(5);
  if (!strcmp(how, "quick_exit")) quick_exit(6);
  if (!strcmp(how, "exit")) exit(7);
  _exit(8);
}

int main(int count, char** arguments) {
  if (count > 1) {
    const char* const value = getenv("FOREIGN");
    printf("%s %s\n", value, getenv("NVTX_INJECTION64_PATH") ? "set" : "unset");
    return 4;
  }
  pthread_t id;
  printf("thread %d\n", pthread_create(&id, NULL, thread, NULL) || pthread_join(id, NULL));
#ifndef FOREIGN_STATIC
  printf("dlopen %d\n", dlopen("libno_such_library.so", RTLD_NOW) != NULL);
  printf("dlerror %d\n", dlerror() != NULL);
  printf("dlsym %d %d %d\n", dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL,
         dlsym(RTLD_DEFAULT, "printf") != NULL, dlsym(RTLD_DEFAULT, "dlopen") != NULL);
#endif
  setenv("FOREIGN", "value", 1);
  atexit(at_exit_handler);
  at_quick_exit(at_quick_exit_handler);
  const char* const ways[] = {"execl",      "execlp", "execle",  "execv",   "execvp",
                              "execvpe",    "execve", "fexecve", "missing", "_Exit",
                              "quick_exit", "exit",   "_exit"};
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {
    printf("%s: ", ways[i]);
    fflush(stdout);
    if (fork() == 0) become(ways[i], arguments[0]);
    int status = 0;
    wait(&status);
    printf("%d\n", status);
  }
  return 3;
}
