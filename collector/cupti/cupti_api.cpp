// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_api.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "collector/base/libraries.h"
#include "collector/base/log.h"

namespace gpuprof {
namespace {

constexpr size_t kPathBytes = 1400;

// Newest first. CUDA 11's soname carries the minor version.
constexpr const char* kSonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"};

int version_from(void* library, const char* function) {
  const auto get = reinterpret_cast<int (*)(int*)>(real_symbol(library, function));
  int version = 0;
  return get && get(&version) == 0 ? version : 0;
}

// Which of kSonames may work in this process, in the order in which they are tried.
struct Candidates {
  size_t first, end;
};

// The CUPTI that belongs to the CUDA runtime of the process: a different major version refuses to
// work. A runtime inside the program cannot be asked; it may be older than the driver, and so may
// CUPTI, which works on later drivers, too (CUDA compatibility guide, backward compatibility).
Candidates candidates() {
  constexpr size_t kCount = std::size(kSonames);
  const auto place = [](int version) -> size_t {
    return version >= 13000 ? 0 : version >= 12000 ? 1 : 2;
  };
  const int runtime = version_from(loaded_cudart(), "cudaRuntimeGetVersion");
  if (runtime != 0) return {place(runtime), place(runtime) + 1};
  const int driver = version_from(loaded_driver(), "cuDriverGetVersion");
  return {driver == 0 ? 0 : place(driver), kCount};
}

// "libcupti.so.13, libcupti.so.12 or libcupti.so.11.8"
void list(const Candidates& tried, char* out, size_t size) {
  size_t used = 0;
  for (size_t i = tried.first; i < tried.end && used < size; ++i) {
    const char* const before = i == tried.first ? "" : i + 1 == tried.end ? " or " : ", ";
    used +=
        static_cast<size_t>(std::snprintf(out + used, size - used, "%s%s", before, kSonames[i]));
  }
}

void* open_beside(void* runtime, const char* soname) {
  void* const known = real_symbol(runtime, "cudaRuntimeGetVersion");
  Dl_info info{};
  if (!known || !::dladdr(known, &info) || !info.dli_fname) return nullptr;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  if (!slash) return nullptr;
  const int length = static_cast<int>(slash - info.dli_fname);
  // Beside it (wheels of CUDA 13, distributions), in the toolkit, in the wheel of CUDA 12; and from
  // a framework that brings a runtime of its own to the wheels.
  for (const char* place : {"", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib",
                            "/../../nvidia/cuda_cupti/lib", "/../../nvidia/cu13/lib"}) {
    char path[kPathBytes];
    std::snprintf(path, sizeof path, "%.*s%s/%s", length, info.dli_fname, place, soname);
    if (void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

// The folder of Python packages that some library of the process came from.
int find_packages(dl_phdr_info* object, size_t, void* out) {
  char* const folder = static_cast<char*>(out);
  for (const char* name : {"/site-packages/", "/dist-packages/"}) {
    const char* const found = object->dlpi_name ? std::strstr(object->dlpi_name, name) : nullptr;
    if (!found) continue;
    const auto length =
        static_cast<int>(found - object->dlpi_name) + static_cast<int>(std::strlen(name));
    std::snprintf(folder, kPathBytes, "%.*s", length, object->dlpi_name);
    return 1;
  }
  return 0;
}

// Where the runtime is not a library of its own: in the wheels, then where toolkits are installed.
void* open_by_place(const char* soname) {
  char folder[kPathBytes] = "", path[kPathBytes + 100];
  list_objects(find_packages, folder);
  for (const char* place : {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib"}) {
    if (!folder[0]) break;
    std::snprintf(path, sizeof path, "%s%s/%s", folder, place, soname);
    if (void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  if (void* const handle = ::dlopen(soname, RTLD_LAZY | RTLD_LOCAL)) return handle;
  std::snprintf(path, sizeof path, "/usr/local/cuda/extras/CUPTI/lib64/%s", soname);
  return ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
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
  const Candidates tried = candidates();
  for (size_t i = tried.first; i < tried.end; ++i) {
    if (void* const handle = open_beside(loaded_cudart(), kSonames[i])) return handle;
    if (void* const handle = open_by_place(kSonames[i])) return handle;
  }
  char names[100] = "";
  list(tried, names, sizeof names);
  std::snprintf(why, why_size,
                "%s was not found beside the CUDA runtime, in Python's packages nor on the "
                "library path; install it or set GPUPROF_CUPTI to its path",
                names);
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
  Dl_info found{};
  if (::dladdr(reinterpret_cast<void*>(api.GetVersion), &found) && found.dli_fname) {
    log_line(LogLevel::debug, "CUPTI: %s", found.dli_fname);
  }
#define GPUPROF_LOOK_UP(name) \
  api.name = reinterpret_cast<decltype(api.name)>(real_symbol(library, "cupti" #name));
  GPUPROF_LOOK_UP(Subscribe_v2)
  GPUPROF_LOOK_UP(GetGraphExecId)
  GPUPROF_LOOK_UP(Finalize)
  GPUPROF_LOOK_UP(ActivityEnableCudaEventDeviceTimestamps)
#undef GPUPROF_LOOK_UP
  api.has_v2 = api.Subscribe_v2 != nullptr;
#define GPUPROF_LOOK_UP(name, ...)                                                            \
  api.v2.name = reinterpret_cast<decltype(api.v2.name)>(real_symbol(library, "cupti" #name)); \
  api.has_v2 = api.has_v2 && api.v2.name;
  GPUPROF_CUPTI_V2_FUNCTIONS(GPUPROF_LOOK_UP)
#undef GPUPROF_LOOK_UP
  // Its functions tell, since it cannot be asked for its version.
  api.dies_without_driver = api.v2.ActivityRegisterCallbacks_v2 && !api.v2.GetTimestamp_v2;
  return true;
}

}  // namespace gpuprof
