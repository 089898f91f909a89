// SPDX-License-Identifier: Apache-2.0
// Opens a plug-in so that its own libraries come before all others, preloaded ones too.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
  int (*const work)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "plugin_work") : NULL;
  if (work == NULL) {
    printf("cannot open: %s\n", dlerror());
    return 91;
  }
  return work();
}
