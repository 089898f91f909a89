// SPDX-License-Identifier: Apache-2.0
// Another preloaded library with functions of the same names as ours. Each says that it ran.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

char* getenv(const char* name) {
  static char answer[] = "42";
  const size_t length = strlen(name);
  if (strcmp(name, "HAZARD_ANSWER") == 0) return answer;
  for (char** entry = environ; entry != NULL && *entry != NULL; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return NULL;
}

void* dlopen(const char* file, int flags) {
  void* (*real)(const char*, int) = (void* (*)(const char*, int))(size_t)dlsym(RTLD_NEXT, "dlopen");
  if (file != NULL && strstr(file, "libm.so.6") != NULL) printf("another dlopen\n");
  return real(file, flags);
}

void _exit(int status) {
  void (*real)(int) = (void (*)(int))(size_t)dlsym(RTLD_NEXT, "_exit");
  if (write(STDOUT_FILENO, "another _exit\n", 14) == 14) real(status);
  __builtin_trap();
}
