// SPDX-License-Identifier: Apache-2.0
// Opens the plug-in given as argument in a namespace of its own, with its own CUDA runtime and
// driver, and has it do its work there.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  void* const plugin = count > 1 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*work)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "plugin_work") : NULL;
  if (work == NULL) {
    printf("dlmopen: %s\n", dlerror());
    return 91;
  }
  const int result = work();
  printf("in a namespace of its own: %d\n", result);
  return result;
}
