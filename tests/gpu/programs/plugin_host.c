// SPDX-License-Identifier: Apache-2.0
// Opens the library argv[1] with RTLD_DEEPBIND, so that it binds to its own CUDA runtime past
// everything that was preloaded, and runs its ways_main with the other arguments.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
  int (*work)(int, char**) = library ? (int (*)(int, char**))dlsym(library, "ways_main") : NULL;
  if (!work) {
    fprintf(stderr, "plugin_host: %s\n", argc > 1 ? dlerror() : "no library named");
    return 1;
  }
  return work(argc - 1, argv + 1);
}
