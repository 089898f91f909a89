// SPDX-License-Identifier: Apache-2.0
#include "preload/objects/copies.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>

#include "collector/base/host.h"
#include "collector/base/os.h"
#include "preload/objects/elf_symbols.h"
#include "preload/objects/object_slots.h"
#include "preload/resolve.h"

namespace gpuprof {
namespace {

constexpr size_t kLibraries = static_cast<size_t>(Library::count);

// Of an entry whose value is a place in the object's strings; null: it has none that begins so.
const char* dynamic_text(const Object& object, ElfW(Sxword) tag, const char* prefix) {
  if (!object.dynamic || !object.strings) return nullptr;
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    const char* const text = object.strings + entry->d_un.d_val;
    if (entry->d_tag == tag && begins_with(text, prefix)) return text;
  }
  return nullptr;
}

// A copy of the library that the object is linked to; null: to none.
const char* needed_copy(Library library, const Object& object) {
  return dynamic_text(object, DT_NEEDED, file_of_copies(library));
}

bool needs_any_copy(const Object& object, void*) {
  for (size_t i = 0; i < kLibraries; ++i) {
    if (needed_copy(static_cast<Library>(i), object)) return true;
  }
  return false;
}

// The copy that hooks call. Its name lasts as long as it does, and it stays.
struct Hooked {
  void* function;      // of a name; null: there is no copy
  const char* soname;  // by which what is linked to it needs it; null: unknown
};

Hooked find_hooked(Library library, const char* name) {
  void* const function = function_of_hooked_copy(library, name);
  return {function, function ? dynamic_text(object_at(function), DT_SONAME, file_of_copies(library))
                             : nullptr};
}

// The collector says it, once it records. The name's own object may be unloaded by then.
void tell(const char* soname) {
  static constinit std::atomic<uint32_t> told{0};
  static char names[4][64];
  const uint32_t at = told.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < at; ++i) {
    if (same_text(names[i], soname)) return;
  }
  uint32_t expected = at;
  if (at == 4 || !told.compare_exchange_strong(expected, at + 1)) return;
  for (size_t i = 0; i + 1 < sizeof names[at] && soname[i] != '\0'; ++i) names[at][i] = soname[i];
  g_host.other_copy.store(names[at], std::memory_order_release);
}

void lead_apart(Library library, const Object& object, void* handle, const char* soname) {
  bool changed = false;
  each_function_slot(object, [&](ElfW(Addr) place, const ElfW(Sym) & symbol, const char* name) {
    if (symbol.st_shndx != SHN_UNDEF) return;
    const Api api = find_api(name);
    if (api == Api::count || kApiRows[static_cast<size_t>(api)].library != library) return;
    void* const real = real_dlsym()(handle, name);
    if (!real || *reinterpret_cast<void**>(place) == real) return;
    store_slot(object, place, real);
    changed = true;
  });
  if (changed) tell(soname);
}

// What the object's own copy has for `name`, if hooks call another; the object is led to that copy.
void* lead_to_own(Library library, const Object& object, const char* name) {
  const char* const needed = needed_copy(library, object);
  if (!needed || !::dlopen) return nullptr;
  const Hooked hooked = find_hooked(library, name);
  if (!hooked.soname || same_text(needed, hooked.soname)) return nullptr;
  void* const handle = ::dlopen(needed, RTLD_LAZY | RTLD_NOLOAD);
  // The copy may bear several names.
  void* const own = handle ? real_dlsym()(handle, name) : nullptr;
  const bool apart = own && own != hooked.function;
  if (apart) lead_apart(library, object, handle, needed);
  if (handle) ::dlclose(handle);  // the object keeps what it is linked to
  ::dlerror();                    // the program did not ask
  return apart ? own : nullptr;
}

void lead_all_to_own(const Object& object, void*, void*) {
  for (size_t i = 0; i < kLibraries; ++i) {
    const auto library = static_cast<Library>(i);
    lead_to_own(library, object, marking_function(library));
  }
}

// What there was when objects were looked at last.
struct Last {
  std::atomic<uint64_t> ever{0}, count{0}, unloaded{0};
};
constinit Last g_last;

void look_at_new_ones() {
  const uint64_t ever = objects_ever_loaded();
  if (ever == g_last.ever.exchange(ever, std::memory_order_relaxed)) return;
  const LoadedObjects before{static_cast<size_t>(g_last.count.load(std::memory_order_relaxed)),
                             g_last.unloaded.load(std::memory_order_relaxed)};
  const LoadedObjects loaded = loaded_objects();
  g_last.count.store(loaded.count, std::memory_order_relaxed);
  g_last.unloaded.store(loaded.unloaded, std::memory_order_relaxed);
  each_loaded_since(before, needs_any_copy, lead_all_to_own, nullptr);
}

constinit std::atomic<bool> g_hooks_are_called{false};

}  // namespace

void* own_copys_function(Library library, const void* inside, const char* name) {
  const ErrnoGuard keep_errno;
  return lead_to_own(library, object_at(inside), name);
}

void lead_copies_apart() {
  const ErrnoGuard keep_errno;
  g_hooks_are_called.store(true, std::memory_order_relaxed);
  look_at_new_ones();
}

void lead_copies_apart_before_opening() {
  if (g_hooks_are_called.load(std::memory_order_relaxed)) look_at_new_ones();
}

}  // namespace gpuprof
