// SPDX-License-Identifier: Apache-2.0
// Threads that open a plug-in each (the arguments), use it and close it, again and again.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { kRounds = 1000, kThreads = 8 };

static void* open_and_close(void* path) {
  for (int i = 0; i < kRounds; ++i) {
    void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*const work)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "plugin_work") : NULL;
    if (work == NULL || work() != 0) printf("cannot work: %s\n", dlerror());
    if (plugin != NULL) dlclose(plugin);
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[kThreads];
  for (int i = 0; i + 1 < argc && i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, open_and_close, argv[i + 1]);
  }
  for (int i = 0; i + 1 < argc && i < kThreads; ++i) pthread_join(threads[i], NULL);
  puts("done");
  return 0;
}
