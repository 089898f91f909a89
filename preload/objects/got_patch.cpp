// SPDX-License-Identifier: Apache-2.0
#include "preload/objects/got_patch.h"

#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <cstdint>

#include "collector/base/libc.h"
#include "preload/heap_hooks.h"
#include "preload/objects/elf_symbols.h"
#include "preload/objects/object_slots.h"
#include "preload/process_hooks.h"
#include "preload/resolve.h"
#include "preload/torch_hooks.h"

// Of the assembler part.
extern "C" [[gnu::visibility("hidden")]] char gpuprof_own_dlsym[], gpuprof_own_dlvsym[],
    gpuprof_own_dlopen[];

namespace gpuprof {
namespace {

void* bound_later(const Object& object, void* handle, const char* name) {
  return handle ? real_dlsym()(handle, name) : symbol_of_needed(object, name);
}

// What a slot is bound to, or would be at its first call: until then it leads into the object's own
// procedure linkage table, and the scope of `handle` tells.
void* bound_to(const Object& object, ElfW(Addr) place, void* handle, Api api, const char* name) {
  void* const now = *reinterpret_cast<void**>(place);
  if (!object.contains(now)) return now;
  void* const real = bound_later(object, handle, name);
  return real ? real : find_real(api);
}

// Whether the object calls, or will, what ours calls in turn: not a function of that name of its
// own libraries (RTLD_DEEPBIND).
bool leads_where_ours_does(const Object& object, ElfW(Addr) place, void* handle, const char* name) {
  void* target = *reinterpret_cast<void**>(place);
  if (object.contains(target)) {  // its linkage table: not bound yet
    target = bound_later(object, handle, name);
  }
  return !target || target == symbol_after_own(name);
}

// What the object is to call instead of `name`; null: leave it.
void* replacement(const Object& object, ElfW(Addr) place, void* handle, const char* name) {
  void* own = process_hook(name);
  if (same_text(name, "dlsym")) own = gpuprof_own_dlsym;
  if (same_text(name, "dlvsym")) own = gpuprof_own_dlvsym;
  if (same_text(name, "dlopen")) own = gpuprof_own_dlopen;
  if (own) return leads_where_ours_does(object, place, handle, name) ? own : nullptr;
  const Api api = find_api(name);
  if (api == Api::count) return nullptr;
  prepare_slots();
  HookSlot& slot = hook_slot(api);
  if (!slot.wrapper) return nullptr;
  void* const real = bound_to(object, place, handle, api, name);
  if (!real || real == slot.wrapper) return nullptr;
  if (!slot.get() && belongs_to_hooks(api, real)) {
    slot.set(real);
    note_used_copy(kApiRows[static_cast<size_t>(api)].library, real);
  }
  // A second library of the same name (another CUDA version) is not ours to redirect.
  return slot.get() == real ? slot.wrapper : nullptr;
}

// Likewise, of functions that give host memory. An allocator's calls of itself stay, but for
// libc's: its other functions allocate by the names that everybody uses.
void* heap_replacement(const Object& object, ElfW(Addr) place, void* handle,
                       const ElfW(Sym) & symbol, const char* name) {
  const HeapHook* const row = heap_hook(name);
  if (!row || !row->real) return nullptr;
  const bool is_libc = object.contains(reinterpret_cast<void*>(::gnu_get_libc_version));
  const bool allocates = object.contains(heap_hook("malloc")->real);
  if (allocates && (row->maps || !is_libc)) return nullptr;
  if (symbol.st_shndx != SHN_UNDEF && !is_libc) return nullptr;
  void* const now = *reinterpret_cast<void**>(place);
  if (now == row->real) return row->hook;
  // Not bound yet: it leads into the object's own procedure linkage table.
  if (!object.contains(now) || !handle) return nullptr;
  void* const found = real_dlsym()(handle, name);
  const bool same = found == row->real || found == real_dlsym()(RTLD_DEFAULT, name);
  return found && same ? row->hook : nullptr;
}

// Likewise, of libc10's, which it calls through slots itself; not of one that is part of another
// object.
void* torch_replacement(const Object& object, bool foreign, const char* name) {
  void* real = nullptr;
  void* const hook = torch_hook(name, real);
  if (!hook || !real) return nullptr;
  return foreign || object.contains(real) ? hook : nullptr;
}

void patch(const Object& object, void* handle, PatchedCalls calls) {
  const bool all = calls == PatchedCalls::all, heap = heap_calls_are_patched();
  each_function_slot(object, [&](ElfW(Addr) place, const ElfW(Sym) & symbol, const char* name) {
    // Defined by the object itself: a runtime of its own, which its cuGetProcAddress shows.
    const bool foreign = symbol.st_shndx == SHN_UNDEF;
    void* wanted = all ? torch_replacement(object, foreign, name) : nullptr;
    if (!wanted && foreign && all) wanted = replacement(object, place, handle, name);
    if (!wanted && heap) wanted = heap_replacement(object, place, handle, symbol, name);
    if (wanted) store_slot(object, place, wanted);
  });
}

struct Patch {
  void* handle;
  PatchedCalls calls;
};

void patch_one(const Object& object, void* kept, void* raw) {
  const Patch& wanted = *static_cast<const Patch*>(raw);
  patch(object, wanted.handle ? wanted.handle : kept, wanted.calls);
}

}  // namespace

void* called_by_us(const char* name) {
  void* found = nullptr;
  each_function_slot(own_object(), [&](ElfW(Addr) place, const ElfW(Sym)&, const char* called) {
    if (same_text(called, name)) found = *reinterpret_cast<void**>(place);
  });
  return found;
}

void patch_all_while_opened() {
  Patch wanted{nullptr, PatchedCalls::all};
  each_loaded_while_opened(patch_one, &wanted);
}

void patch_loaded_since(const LoadedObjects& before, void* handle, PatchedCalls calls) {
  Patch wanted{handle, calls};
  each_loaded_since(before, patch_one, &wanted);
}

}  // namespace gpuprof
