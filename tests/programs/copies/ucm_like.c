// SPDX-License-Identifier: Apache-2.0
// As UCX's libucm (src/ucm/bistro): finds functions by dlsym through a handle of its own file, to
// change their code. It says in which file each lies.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int cuMemAlloc_v2(unsigned long long* memory, size_t bytes);

__attribute__((used)) static void* const linked = (void*)cuMemAlloc_v2;

int work(void) {
  static const char* const names[] = {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemMap",
                                      "cuMemAllocAsync"};
  Dl_info own, place;
  dladdr((void*)work, &own);
  void* const handle = dlopen(own.dli_fname, RTLD_LAZY);
  for (int i = 0; i < 4; ++i) {
    void* const found = dlsym(handle, names[i]);
    const char* const file = found && dladdr(found, &place) ? place.dli_fname : "nowhere";
    printf("%s is in %s\n", names[i], strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
  }
  return 0;
}
