// SPDX-License-Identifier: Apache-2.0
// Hazard: the environment. It stays as the program and its children have it; getenv works from
// threads and after clearenv.
#include <pthread.h>

#include "tests/programs/hazard.h"

extern char** environ;

static int by_text(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static void print_environment(const char* when) {
  size_t count = 0;
  while (environ != NULL && environ[count] != NULL) ++count;
  char** sorted = (char**)calloc(count + 1, sizeof *sorted);
  if (count > 0) memcpy(sorted, environ, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_text);
  printf("%s\n", when);
  for (size_t i = 0; i < count; ++i) printf("%s\n", sorted[i]);
  free(sorted);
  fflush(stdout);
}

static int unchanged(int argc, char** argv) {
  (void)argc, (void)argv;
  print_environment("before:");
  hazard_steps(4, 5);
  print_environment("after:");
  return system("env | sort");
}

static int changed_by_program(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(1, 1);
  setenv("HAZARD", "set", 1);
  printf("HAZARD=%s\n", getenv("HAZARD"));
  unsetenv("HAZARD");
  printf("unset: %d\n", getenv("HAZARD") == NULL);
  clearenv();
  printf("cleared: %d\n", getenv("PATH") == NULL);
  hazard_steps(4, 5);
  setenv("ONE", "1", 1);
  printf("ONE=%s\n", getenv("ONE"));
  return 0;
}

static void* read_often(void* unused) {
  (void)unused;
  size_t found = 0;
  for (int i = 0; i < 20000; ++i) found += getenv("PATH") != NULL;
  return (void*)found;
}

static int from_threads(int argc, char** argv) {
  (void)argc, (void)argv;
  pthread_t threads[4];
  size_t sum = 0;
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, read_often, NULL);
  hazard_steps(4, 5);
  for (int i = 0; i < 4; ++i) {
    void* found = NULL;
    pthread_join(threads[i], &found);
    sum += (size_t)found;
  }
  printf("found %zu\n", sum);
  return 0;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"unchanged", unchanged}, {"changed", changed_by_program}, {"threads", from_threads}};
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
