// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "collector/libraries.h"

namespace gpuprof {
namespace {

// Newest first. CUDA 11's soname carries the minor version.
constexpr const char* kSonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"};

// The CUPTI that belongs to the CUDA runtime of the process: a different major version refuses to
// work.
const char* soname_for_runtime(void* runtime) {
  const auto get = reinterpret_cast<int (*)(int*)>(real_symbol(runtime, "cudaRuntimeGetVersion"));
  int version = 0;
  if (!get || get(&version) != 0) return nullptr;
  if (version >= 13000) return kSonames[0];
  return version >= 12000 ? kSonames[1] : kSonames[2];
}

void* open_beside(void* runtime, const char* soname) {
  void* const known = real_symbol(runtime, "cudaRuntimeGetVersion");
  Dl_info info{};
  if (!known || !::dladdr(known, &info) || !info.dli_fname) return nullptr;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  if (!slash) return nullptr;
  const int length = static_cast<int>(slash - info.dli_fname);
  // Beside it (wheels of CUDA 13, distributions), in the toolkit, in the wheel of CUDA 12.
  for (const char* place : {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib"}) {
    char path[1400];
    std::snprintf(path, sizeof path, "%.*s%s/%s", length, info.dli_fname, place, soname);
    if (void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

void* open_library(const char* wanted, char* why, size_t why_size) {
  if (wanted[0]) {
    void* const handle = ::dlopen(wanted, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) std::snprintf(why, why_size, "GPUPROF_CUPTI=\"%s\" cannot be loaded", wanted);
    return handle;
  }
  // The one that the process already has comes first: two copies of one soname would be mixed up.
  for (const char* soname : kSonames) {
    if (void* const handle = ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD)) return handle;
  }
  void* const runtime = loaded_cudart();
  const char* const soname = soname_for_runtime(runtime);
  if (runtime && soname) {
    if (void* const handle = open_beside(runtime, soname)) return handle;
    if (void* const handle = ::dlopen(soname, RTLD_LAZY | RTLD_LOCAL)) return handle;
    std::snprintf(why, why_size,
                  "%s was not found beside the CUDA runtime nor on the library path; install it or "
                  "set GPUPROF_CUPTI to its path",
                  soname);
    return nullptr;
  }
  for (const char* name : kSonames) {
    if (void* const handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  std::snprintf(why, why_size,
                "libcupti was not found; install it or set GPUPROF_CUPTI to its path");
  return nullptr;
}

}  // namespace

bool load_cupti(const char* wanted, CuptiApi& api, char* why, size_t why_size) {
  void* const library = open_library(wanted, why, why_size);
  if (!library) return false;
#define GPUPROF_LOOK_UP(name)                                                           \
  api.name = reinterpret_cast<decltype(api.name)>(real_symbol(library, "cupti" #name)); \
  if (!api.name) {                                                                      \
    std::snprintf(why, why_size, "libcupti has no function cupti" #name);               \
    return false;                                                                       \
  }
  GPUPROF_CUPTI_FUNCTIONS(GPUPROF_LOOK_UP)
#undef GPUPROF_LOOK_UP
  return true;
}

}  // namespace gpuprof
