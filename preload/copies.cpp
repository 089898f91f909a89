// SPDX-License-Identifier: Apache-2.0
#include "preload/copies.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>

#include "collector/base/host.h"
#include "collector/base/os.h"
#include "preload/elf_symbols.h"
#include "preload/object_slots.h"
#include "preload/resolve.h"

namespace gpuprof {
namespace {

constexpr size_t kLibraries = static_cast<size_t>(Library::count);

bool begins_with(const char* text, const char* prefix) {
  while (*prefix != '\0' && *text == *prefix) ++text, ++prefix;
  return *prefix == '\0';
}

// Of an entry whose value is a place in the object's strings; null: it has none that begins so.
const char* dynamic_text(const Object& object, ElfW(Sxword) tag, const char* prefix) {
  if (!object.dynamic || !object.strings) return nullptr;
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    const char* const text = object.strings + entry->d_un.d_val;
    if (entry->d_tag == tag && begins_with(text, prefix)) return text;
  }
  return nullptr;
}

// The copies that hooks call. Names last as long as their objects, and these stay.
struct Hooked {
  const char* names[kLibraries];    // of a function of each
  void* marks[kLibraries];          // that function; null: there is no copy
  const char* sonames[kLibraries];  // by which what is linked to it needs it; null: unknown
};

void find_hooked(Library library, const char* name, Hooked& out) {
  const auto at = static_cast<size_t>(library);
  void* const mark = function_of_hooked_copy(library, name);
  out.names[at] = name;
  out.marks[at] = mark;
  out.sonames[at] =
      mark ? dynamic_text(object_at(mark), DT_SONAME, file_of_copies(library)) : nullptr;
}

// Of a copy of the library that the object is linked to, if hooks call another.
const char* needs_another(Library library, const Object& object, const Hooked& hooked) {
  const char* const soname = hooked.sonames[static_cast<size_t>(library)];
  const char* const needed = dynamic_text(object, DT_NEEDED, file_of_copies(library));
  return soname && needed && !same_text(needed, soname) ? needed : nullptr;
}

bool needs_any_other(const Object& object, void* raw) {
  for (size_t i = 0; i < kLibraries; ++i) {
    if (needs_another(static_cast<Library>(i), object, *static_cast<const Hooked*>(raw)))
      return true;
  }
  return false;
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

// What the object's own copy has for the named function, if hooks call another; the object is led
// to that copy.
void* lead_to_own(Library library, const Object& object, const Hooked& hooked) {
  const auto at = static_cast<size_t>(library);
  const char* const needed = needs_another(library, object, hooked);
  void* const handle = needed && ::dlopen ? ::dlopen(needed, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (!handle) return nullptr;
  // The copy may bear several names.
  void* const own = real_dlsym()(handle, hooked.names[at]);
  const bool apart = own && own != hooked.marks[at];
  if (apart) lead_apart(library, object, handle, needed);
  ::dlclose(handle);  // the object keeps what it is linked to
  return apart ? own : nullptr;
}

void lead_all_to_own(const Object& object, void*, void* raw) {
  for (size_t i = 0; i < kLibraries; ++i) {
    lead_to_own(static_cast<Library>(i), object, *static_cast<const Hooked*>(raw));
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
  Hooked hooked{};
  for (size_t i = 0; i < kLibraries; ++i) {
    const auto library = static_cast<Library>(i);
    find_hooked(library, marking_function(library), hooked);
  }
  each_loaded_since(before, needs_any_other, lead_all_to_own, &hooked);
}

constinit std::atomic<bool> g_hooks_are_called{false};

}  // namespace

void* own_copys_function(Library library, const void* inside, const char* name) {
  const ErrnoGuard keep_errno;
  Hooked hooked{};
  find_hooked(library, name, hooked);
  return lead_to_own(library, object_at(inside), hooked);
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
