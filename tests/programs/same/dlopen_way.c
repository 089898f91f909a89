// SPDX-License-Identifier: Apache-2.0
// libcudart by dlopen(RTLD_LOCAL) and dlsym.
#include <dlfcn.h>

#include "tests/programs/same/work.h"

int main(void) {
  void* library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 91;
  struct same_functions functions;
  const struct {
    const char* name;
    void* slot;
  } wanted[] = {
      {"simcuda_register_kernel", &functions.find_kernel},
      {"cudaMalloc", &functions.malloc_},
      {"cudaFree", &functions.free_},
      {"cudaStreamCreate", &functions.stream_create},
      {"cudaStreamSynchronize", &functions.stream_synchronize},
      {"cudaDeviceSynchronize", &functions.device_synchronize},
      {"cudaMemcpy", &functions.copy},
      {"cudaMemsetAsync", &functions.set},
      {"cudaLaunchKernel", &functions.launch},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
    void* found = dlsym(library, wanted[i].name);
    if (found == NULL) return 92;
    *(void**)wanted[i].slot = found;
  }
  return same_work(&functions);
}
