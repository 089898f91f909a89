// SPDX-License-Identifier: Apache-2.0
#include "collector/base/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstring>
#include <initializer_list>

#include "collector/base/fork_waits.h"
#include "collector/base/host.h"

namespace gpuprof {
namespace {

void* first_loaded(std::initializer_list<const char*> sonames) {
  for (const char* soname : sonames) {
    // The extra reference is kept: a library that we may call must not be unloaded below us.
    if (void* const handle = ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  }
  return nullptr;
}

int has_name(dl_phdr_info* object, size_t, void* begin) {
  const char* const path = object->dlpi_name ? object->dlpi_name : "";
  const char* const slash = std::strrchr(path, '/');
  const auto* const wanted = static_cast<const char*>(begin);
  return std::strncmp(slash ? slash + 1 : path, wanted, std::strlen(wanted)) == 0;
}

struct PathSearch {
  const char* begin;
  char path[PATH_MAX];
};

int note_path(dl_phdr_info* object, size_t size, void* raw) {
  PathSearch& search = *static_cast<PathSearch*>(raw);
  if (!has_name(object, size, const_cast<char*>(search.begin))) return 0;
  const size_t length = std::strlen(object->dlpi_name);
  if (length < sizeof search.path) std::memcpy(search.path, object->dlpi_name, length + 1);
  return 1;
}

// Null in programs without preload, as tests are: their dlsym is the real one.
SymbolLookup real_lookup() { return g_host.find_lookup ? g_host.find_lookup() : nullptr; }

}  // namespace

void* loaded_cudart() {
  return first_loaded({"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"});
}

void* loaded_driver() { return first_loaded({"libcuda.so.1"}); }

void* loaded_nccl() { return first_loaded({"libnccl.so.2"}); }

void* loaded_nvml() { return first_loaded({"libnvidia-ml.so.1"}); }

void* loaded_cxx_runtime() { return first_loaded({"libstdc++.so.6", "libc++abi.so.1"}); }

int list_objects(int (*visit)(dl_phdr_info*, size_t, void*), void* context) {
  const ForkWaitsScope forks_wait;
  return ::dl_iterate_phdr(visit, context);
}

// Opened after the walk: within it the loader's other lock would be taken in the wrong order.
void* loaded_library(const char* begin) {
  PathSearch search;
  search.begin = begin;
  search.path[0] = '\0';
  list_objects(note_path, &search);
  return search.path[0] ? ::dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

bool library_is_loaded(const char* begin) {
  return list_objects(has_name, const_cast<char*>(begin)) != 0;
}

void* exported_symbol(const char* library, const char* name) {
  if (!g_host.walk) return nullptr;
  const ForkWaitsScope forks_wait;  // the walk lists the loaded objects
  void* const of_program = g_host.walk(nullptr, name);
  return of_program ? of_program : g_host.walk(library, name);
}

void* program_symbol(const char* name) {
  const SymbolLookup lookup = real_lookup();
  return lookup ? lookup(RTLD_DEFAULT, name) : ::dlsym(RTLD_DEFAULT, name);
}

void* real_symbol(void* handle, const char* name) {
  if (!handle) return nullptr;
  const SymbolLookup lookup = real_lookup();
  return lookup ? lookup(handle, name) : ::dlsym(handle, name);
}

}  // namespace gpuprof
