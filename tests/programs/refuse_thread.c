// SPDX-License-Identifier: Apache-2.0
// To be preloaded: threads whose stack has as many bytes as REFUSE_STACK says cannot be had.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) =
      dlsym(RTLD_NEXT, "pthread_create");
  const char* const refused = getenv("REFUSE_STACK");
  size_t bytes = 0;
  if (refused && attributes && pthread_attr_getstacksize(attributes, &bytes) == 0 &&
      bytes == strtoull(refused, NULL, 10)) {
    return EAGAIN;
  }
  return real(thread, attributes, run, argument);
}
