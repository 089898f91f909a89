// SPDX-License-Identifier: Apache-2.0
// The driver's functions that are not events: cuGetProcAddress, by which CUDA's runtimes (the one
// linked into a program too), Triton and others get all the rest, and those that name kernels.
#include <dlfcn.h>

#include <cstring>

#include "preload/driver_functions.h"
#include "preload/export.h"
#include "preload/hook.h"

extern "C" {
GPUPROF_EXPORT CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
GPUPROF_EXPORT CUresult cuGetProcAddress_v2(const char*, void**, int, cuuint64_t,
                                            CUdriverProcAddressQueryResult*);
GPUPROF_EXPORT CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
GPUPROF_EXPORT CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*);
GPUPROF_EXPORT CUresult cuKernelGetFunction(CUfunction*, CUkernel);
}

namespace gpuprof {
namespace {

#ifndef GPUPROF_NOP
// A row as cuGetProcAddress knows it.
struct ProcRow {
  Api api;
  int since;  // the CUDA version from which a request gets this signature
  size_t name_length;
  bool per_thread;  // the variant for per-thread default streams
};

constexpr bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

constexpr ProcRow proc_row(Api api, std::string_view symbol, int since) {
  const bool per_thread = ends_with(symbol, "_ptsz") || ends_with(symbol, "_ptds");
  if (per_thread) symbol.remove_suffix(5);
  if (ends_with(symbol, "_v2")) symbol.remove_suffix(3);
  return {api, since, symbol.size(), per_thread};
}

constexpr ProcRow kProcRows[] = {
#define GPUPROF_API(library, symbol, role)
#define GPUPROF_API_AS(library, symbol, model, role)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)
#define GPUPROF_DRIVER(library, symbol, model, role, since) proc_row(Api::symbol, #symbol, since),
#define GPUPROF_DRIVER_HAND(library, symbol, since) proc_row(Api::symbol, #symbol, since),
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
    // What cuGraphInstantiate stands for since CUDA 12.
    {Api::cuGraphInstantiateWithFlags, 12000, sizeof "cuGraphInstantiate" - 1, false},
};

const ProcRow* find_row(std::string_view name, int version, bool per_thread) {
  const ProcRow* best = nullptr;
  for (const ProcRow& row : kProcRows) {
    if (row.per_thread != per_thread || row.name_length != name.size()) continue;
    if (row.since > version || (best && row.since < best->since)) continue;
    const char* const symbol = kApiRows[static_cast<size_t>(row.api)].name;
    if (std::memcmp(symbol, name.data(), name.size()) == 0) best = &row;
  }
  return best;
}

// CUPTI asks the driver for functions of its own use.
bool is_cupti(const void* caller) {
  Dl_info info{};
  if (!::dladdr(caller, &info) || !info.dli_fname) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return std::strncmp(slash ? slash + 1 : info.dli_fname, "libcupti", 8) == 0;
}

// What to hand out for the function that the driver gave. `ask` puts the same question for another
// version. What the driver answers may lie elsewhere than the symbol of that name: name and version
// tell which function it is.
template <typename Ask>
void* hooked(const char* symbol, int version, cuuint64_t flags, void* real, const void* caller,
             const Ask& ask) {
  const ProcRow* row = nullptr;
  if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) row = find_row(symbol, version, true);
  if (!row) row = find_row(symbol, version, false);
  if (!row || is_cupti(caller)) return real;
  // A later CUDA may know a signature of this name that the table does not; then it gives another
  // function than for the last version that the table is of.
  if (version > CUDA_VERSION && ask(CUDA_VERSION) != real) return real;
  prepare_library();
  prepare_slots();
  HookSlot& slot = hook_slot(row->api);
  if (!slot.wrapper) return real;
  if (!slot.get()) slot.set(real);
  return slot.wrapper;
}
#endif

template <Api A, typename Signature>
using Real = Hook<A, Signature>;

}  // namespace
}  // namespace gpuprof

using gpuprof::Api;
using gpuprof::Real;

extern "C" CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                     cuuint64_t flags) {
  const CUresult result = Real<Api::cuGetProcAddress, decltype(cuGetProcAddress)>::call_real(
      symbol, function, version, flags);
#ifndef GPUPROF_NOP
  if (result == CUDA_SUCCESS && symbol && function && *function) {
    const auto ask = [&](int other) -> void* {
      void* answer = nullptr;
      Real<Api::cuGetProcAddress, decltype(cuGetProcAddress)>::call_real(symbol, &answer, other,
                                                                         flags);
      return answer;
    };
    *function =
        gpuprof::hooked(symbol, version, flags, *function, __builtin_return_address(0), ask);
  }
#endif
  return result;
}

extern "C" CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                        cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const CUresult result = Real<Api::cuGetProcAddress_v2, decltype(cuGetProcAddress_v2)>::call_real(
      symbol, function, version, flags, status);
#ifndef GPUPROF_NOP
  if (result == CUDA_SUCCESS && symbol && function && *function) {
    const auto ask = [&](int other) -> void* {
      void* answer = nullptr;
      CUdriverProcAddressQueryResult unused{};
      Real<Api::cuGetProcAddress_v2, decltype(cuGetProcAddress_v2)>::call_real(
          symbol, &answer, other, flags, &unused);
      return answer;
    };
    *function =
        gpuprof::hooked(symbol, version, flags, *function, __builtin_return_address(0), ask);
  }
#endif
  return result;
}

extern "C" CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = Real<Api::cuModuleGetFunction, decltype(cuModuleGetFunction)>::call_real(
      function, module, name);
#ifndef GPUPROF_NOP
  if (result == CUDA_SUCCESS && function && name) {
    gpuprof::register_driver_function(*function, name);
  }
#endif
  return result;
}

extern "C" CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result =
      Real<Api::cuLibraryGetKernel, decltype(cuLibraryGetKernel)>::call_real(kernel, library, name);
#ifndef GPUPROF_NOP
  if (result == CUDA_SUCCESS && kernel && name) gpuprof::register_driver_function(*kernel, name);
#endif
  return result;
}

extern "C" CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result =
      Real<Api::cuKernelGetFunction, decltype(cuKernelGetFunction)>::call_real(function, kernel);
#ifndef GPUPROF_NOP
  if (result == CUDA_SUCCESS && function && *function != reinterpret_cast<CUfunction>(kernel)) {
    gpuprof::register_kernel(*function, kernel);
  }
#endif
  return result;
}

namespace gpuprof {

void fill_driver_hand_slots() {
#define GPUPROF_API(library, symbol, role)
#define GPUPROF_API_AS(library, symbol, model, role)
#define GPUPROF_CALLBACK(library, symbol, role)
#define GPUPROF_HAND(library, symbol)
#define GPUPROF_DRIVER(library, symbol, model, role, since)
#define GPUPROF_DRIVER_HAND(library, symbol, since) GPUPROF_FILL_HAND(symbol)
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
}

}  // namespace gpuprof
