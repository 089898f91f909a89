// SPDX-License-Identifier: Apache-2.0
// Opens each library, launches a kernel through it, and closes it. Prints where it lay.
// usage: chain_reload LIBRARY...
#include <dlfcn.h>

#include "tests/programs/chain/chain_library.h"
#include "tests/programs/hazard.h"

namespace {

[[gnu::noinline]] void launch_one() {
  hazard_launch(1, nullptr);
  __asm__ volatile("");
}

void through(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW);
  auto* const call = reinterpret_cast<decltype(&chain_through_library)>(
      handle ? dlsym(handle, "chain_through_library") : nullptr);
  Dl_info info;
  if (!call || !dladdr(reinterpret_cast<void*>(call), &info)) _exit(94);
  printf("%p\n", info.dli_fbase);
  call(&launch_one);
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  usleep(100000);  // as real ones, it stays a while
  dlclose(handle);
}

}  // namespace

int main(int argc, char** argv) {
  hazard_register_kernel();
  for (int i = 1; i < argc; ++i) through(argv[i]);
  return 0;
}
