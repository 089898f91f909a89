// SPDX-License-Identifier: Apache-2.0
// Allocates on the host what its name of each place says, in every step, on two threads; some of it
// is given back. Prints what a profiler should find: for each place bytes and calls in steps FIRST
// to LAST, and what of them is held after. usage: heap STEPS FIRST LAST LIBRARY
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime.h"

extern void gpuprof_step(void) __attribute__((weak));

static int g_steps, g_first, g_last;

enum place {
  many_small,
  few_large,
  kept,
  grown,
  from_library,
  mapped,
  by_thread,
  aligned,
  late,
  places
};
static const char* const kNames[places] = {"many_small", "few_large",    "kept",
                                           "grown",      "from_library", "mapped",
                                           "by_thread",  "aligned",      "late"};
static unsigned long g_bytes[places], g_calls[places], g_held[places];

static void count(int step, enum place place, unsigned long bytes, unsigned long held) {
  if (step < g_first || step > g_last) return;
  g_bytes[place] += bytes;
  g_calls[place] += 1;
  g_held[place] += held;
}

__attribute__((noinline)) static void place_many_small(int step) {
  for (int i = 0; i < 40000; ++i) {
    char* volatile p = malloc(100 + (size_t)(i % 7));
    count(step, many_small, 100 + (unsigned long)(i % 7), 0);
    free(p);
  }
}

__attribute__((noinline)) static void place_few_large(int step) {
  for (int i = 0; i < 3; ++i) {
    char* volatile p = calloc(1 << 10, 1 << 10);
    count(step, few_large, 1 << 20, 0);
    free(p);
  }
}

// A leak: never given back.
__attribute__((noinline)) static void place_kept(int step) {
  for (int i = 0; i < 64; ++i) {
    char* volatile p = malloc(32 << 10);
    p[0] = 1;
    count(step, kept, 32 << 10, 32 << 10);
  }
}

// What realloc makes larger is allocated anew in whole.
__attribute__((noinline)) static void place_grown(int step) {
  void* p = NULL;
  for (size_t bytes = 64 << 10; bytes <= (1 << 20); bytes *= 2) {
    p = realloc(p, bytes);
    count(step, grown, bytes, 0);
  }
  free(p);
}

// libc allocates itself: strdup.
__attribute__((noinline)) static void place_from_library(int step, const char* text,
                                                         size_t length) {
  for (int i = 0; i < 16; ++i) {
    char* volatile p = strdup(text);
    count(step, from_library, length + 1, 0);
    free(p);
  }
}

__attribute__((noinline)) static void place_mapped(int step) {
  const size_t bytes = 2 << 20;
  void* const p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  count(step, mapped, bytes, 0);
  // Room alone, and a file, are no memory of its own.
  void* const room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(room, bytes);
  munmap(p, bytes);
}

__attribute__((noinline)) static void place_by_thread(int step) {
  for (int i = 0; i < 16; ++i) {
    char* volatile p = malloc(128 << 10);
    count(step, by_thread, 128 << 10, 0);
    free(p);
  }
}

__attribute__((noinline)) static void place_aligned(int step) {
  for (int i = 0; i < 8; ++i) {
    void* p = NULL;
    if (posix_memalign(&p, 64, 256 << 10)) exit(1);
    count(step, aligned, 256 << 10, 0);
    free(p);
  }
}

// By a library that is loaded in the window. Its first calls of all are made to bind them.
__attribute__((noinline)) static void place_late(int step, const char* path) {
  static void* (*give)(size_t);
  static void (*take)(void*);
  if (step < g_first) return;
  if (!give) {
    void* const library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) exit(3);
    *(void**)&give = dlsym(library, "heap_library_give");
    *(void**)&take = dlsym(library, "heap_library_take");
  }
  for (int i = 0; i < 16; ++i) {
    void* const p = give(128 << 10);
    count(step, late, 128 << 10, 0);
    take(p);
  }
}

// What a child process allocates is not the parent's.
__attribute__((noinline)) static void place_in_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 1000; ++i) {
      char* volatile p = malloc(64 << 10);
      free(p);
    }
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) exit(4);
}

static void* thread(void* step) {
  place_by_thread(*(int*)step);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  g_steps = atoi(argv[1]), g_first = atoi(argv[2]), g_last = atoi(argv[3]);
  enum { kText = 100000 };
  static char text[kText + 1];
  memset(text, 'x', kText);
  for (int step = 0; step < g_steps; ++step) {
    cudaDeviceSynchronize();
    place_many_small(step);
    place_few_large(step);
    place_kept(step);
    place_grown(step);
    place_from_library(step, text, kText);
    place_mapped(step);
    place_aligned(step);
    place_late(step, argv[4]);
    if (step == g_first) place_in_child();
    pthread_t other;
    if (pthread_create(&other, NULL, thread, &step)) return 1;
    pthread_join(other, NULL);
    if (gpuprof_step) gpuprof_step();
  }
  for (int i = 0; i < places; ++i) {
    printf("%s %lu %lu %lu\n", kNames[i], g_bytes[i], g_calls[i], g_held[i]);
  }
  return 0;
}
