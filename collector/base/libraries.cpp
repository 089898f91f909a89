// SPDX-License-Identifier: Apache-2.0
#include "collector/base/libraries.h"

#include <dlfcn.h>

#include <initializer_list>

namespace gpuprof {
namespace {

SymbolLookup g_lookup = nullptr;
SymbolWalk g_walk = nullptr;

void* first_loaded(std::initializer_list<const char*> sonames) {
  for (const char* soname : sonames) {
    // The extra reference is kept: a library that we may call must not be unloaded below us.
    if (void* const handle = ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  }
  return nullptr;
}

}  // namespace

void* loaded_cudart() {
  return first_loaded({"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"});
}

void* loaded_driver() { return first_loaded({"libcuda.so.1"}); }

void* loaded_nccl() { return first_loaded({"libnccl.so.2"}); }

void* loaded_cxx_runtime() { return first_loaded({"libstdc++.so.6", "libc++abi.so.1"}); }

void set_symbol_lookup(SymbolLookup lookup, SymbolWalk walk) {
  g_lookup = lookup;
  g_walk = walk;
}

void* exported_symbol(const char* library, const char* name) {
  if (!g_walk) return nullptr;
  void* const of_program = g_walk(nullptr, name);
  return of_program ? of_program : g_walk(library, name);
}

void* program_symbol(const char* name) {
  return g_lookup ? g_lookup(RTLD_DEFAULT, name) : ::dlsym(RTLD_DEFAULT, name);
}

void* real_symbol(void* handle, const char* name) {
  if (!handle) return nullptr;
  return g_lookup ? g_lookup(handle, name) : ::dlsym(handle, name);
}

}  // namespace gpuprof
