// SPDX-License-Identifier: Apache-2.0
// Preloaded with the library: the first thread that a thread other than the program's first one
// starts, which is gpuprof's own, comes three seconds late, as on a machine with too much to do.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static atomic_flag done = ATOMIC_FLAG_INIT;
  const Create create = (Create)dlsym(RTLD_NEXT, "pthread_create");
  if (gettid() != getpid() && !atomic_flag_test_and_set(&done)) sleep(3);
  return create(thread, attributes, run, argument);
}
