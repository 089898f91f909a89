// SPDX-License-Identifier: Apache-2.0
// Opens own_plugin.c with RTLD_DEEPBIND: it must keep the functions of its own library.
#include <dlfcn.h>

#include "hazard.h"

int main(int argc, char** argv) {
  char path[4096];
  (void)argc;
  snprintf(path, sizeof path, "%.*slibown_plugin.so", (int)(strrchr(argv[0], '/') + 1 - argv[0]),
           argv[0]);
  void* plugin = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 91;
  }
  const char* (*answer)(void) = (const char* (*)(void))(size_t)dlsym(plugin, "plugin_answer");
  const char* said = answer();
  printf("%s\n", said != NULL ? said : "no answer");
  return 0;
}
