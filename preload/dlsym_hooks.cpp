// SPDX-License-Identifier: Apache-2.0
// Programs that look functions up by name (ctypes, JAX, plug-ins) get our wrapper where the real
// library has the function. The assembler part is dlsym_<architecture>.S.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "preload/export.h"
#include "preload/objects/copies.h"
#include "preload/objects/elf_symbols.h"
#include "preload/objects/object_slots.h"
#include "preload/resolve.h"

extern "C" {
// Read by the assembler part; filled before it jumps.
[[gnu::visibility("hidden")]] void* gpuprof_real_dlsym = nullptr;
[[gnu::visibility("hidden")]] void* gpuprof_real_dlvsym = nullptr;
// dlsym's answer, or null: the real one is to be asked; 1: there is none. `caller`: where it
// returns to.
[[gnu::visibility("hidden")]] void* gpuprof_filter_dlsym(void* handle, const char* name,
                                                         const void* unused, const void* caller);
[[gnu::visibility("hidden")]] void* gpuprof_filter_dlvsym(void* handle, const char* name,
                                                          const char* version, const void* caller);
}

namespace gpuprof {
namespace {

void* const kAskReal = nullptr;
void* const kNotFound = reinterpret_cast<void*>(1);

// Answers where no dlsym can be found: nothing can be looked up then.
void* nothing(void*, const char*) { return nullptr; }

void find_real_lookups() {
  if (gpuprof_real_dlsym) return;
  void* const dlvsym_found = symbol_after_own("dlvsym");
  void* const dlsym_found = symbol_after_own("dlsym");
  gpuprof_real_dlvsym = dlvsym_found ? dlvsym_found : reinterpret_cast<void*>(&nothing);
  gpuprof_real_dlsym = dlsym_found ? dlsym_found : reinterpret_cast<void*>(&nothing);
}

// As the program would ask without us. `version`: null for dlsym.
void* look_up(void* handle, const char* name, const char* version) {
  using VersionedLookup = void* (*)(void*, const char*, const char*);
  return version ? reinterpret_cast<VersionedLookup>(gpuprof_real_dlvsym)(handle, name, version)
                 : reinterpret_cast<SymbolLookup>(gpuprof_real_dlsym)(handle, name);
}

// Whether the library that `known` is of has `name` in that version. If not, dlerror() says so.
bool has_version(void* known, const char* name, const char* version) {
  Dl_info info{};
  void* const handle =
      ::dladdr(known, &info) ? ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  return handle && look_up(handle, name, version);
}

// Whether a function that was found by its name is of the library that `known` is of. Its address
// may be another: cuGetProcAddress need not answer with the driver's symbols.
bool is_of_same_library(Api api, void* known, void* found) {
  if (known == found) return true;
  Dl_info one{}, other{};
  if (::dladdr(known, &one) && ::dladdr(found, &other)) return one.dli_fbase == other.dli_fbase;
  return found == find_real(api);
}

// Whether the library that `known` was of has been closed, and `found` is of it, opened again at
// another place.
bool is_open_again(Api api, const void* known, const void* found) {
  Dl_info info{};
  return known != found && !::dladdr(known, &info) && found == find_real(api);
}

// UCX's libucm changes the code of the driver's functions for its registration cache. It finds them
// by dlsym, and gives all of its CUDA hooks up if it is led to code that it cannot change
// (https://github.com/openucx/ucx/pull/7865). Ours calls what it has changed.
bool changes_code(const void* caller) { return std::strncmp(file_at(caller), "libucm", 6) == 0; }

void* filter(void* handle, const char* name, const char* version, const void* caller) {
  find_real_lookups();
  if (!name || (another_copy_works() && handle != RTLD_NEXT)) return kAskReal;
  if (!has_libc() && handle == RTLD_NEXT) return kAskReal;
  const Api api = find_api(name);
  if (api == Api::count) return kAskReal;
  prepare_slots();
  HookSlot& slot = hook_slot(api);
  if (!slot.wrapper) return kAskReal;
  const ErrnoGuard keep_errno;
  // What was preloaded before us would find our wrapper, as if there were the function.
  if (handle == RTLD_NEXT) {
    if (slot.get() || !own_symbol_is_next(caller, name) || find_real(api)) return kAskReal;
    real_dlsym()(RTLD_NEXT, name);  // dlerror() says so
    return kNotFound;
  }
  if (changes_code(caller)) return kAskReal;
  void* real = look_up(handle, name, version);
  if (!real && handle == RTLD_DEFAULT) real = slot.wrapper;  // we are in no scope of everybody's
  if (!real || (!has_libc() && real != slot.wrapper)) return kAskReal;
  // The ordinary order, which is the program's own handle's, too, finds us first. A program that
  // probes for a function must not find it only because we have a wrapper for it.
  if (real == slot.wrapper) {
    void* const known = slot.get() ? slot.get() : find_real(api);
    if (known) return !version || has_version(known, name, version) ? slot.wrapper : kNotFound;
    real_dlsym()(RTLD_NEXT, name);  // there is none: dlerror() says so
    return kNotFound;
  }
  const bool fills =
      slot.get() ? is_open_again(api, slot.get(), real) : belongs_to_hooks(api, real);
  if (fills) {
    slot.set(real);
    note_used_copy(kApiRows[static_cast<size_t>(api)].library, real);
    lead_copies_apart();
  }
  if (!slot.get()) return real;
  // A second library of the same name (another CUDA version) is not ours to redirect.
  return is_of_same_library(api, slot.get(), real) ? slot.wrapper : real;
}

}  // namespace
}  // namespace gpuprof

extern "C" void* gpuprof_filter_dlsym(void* handle, const char* name, const void*,
                                      const void* caller) {
  return gpuprof::filter(handle, name, nullptr, caller);
}

extern "C" void* gpuprof_filter_dlvsym(void* handle, const char* name, const char* version,
                                       const void* caller) {
  return gpuprof::filter(handle, name, version, caller);
}
