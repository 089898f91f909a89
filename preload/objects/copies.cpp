// SPDX-License-Identifier: Apache-2.0
#include "preload/objects/copies.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>

#include "collector/base/host.h"
#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "preload/objects/elf_symbols.h"
#include "preload/objects/object_slots.h"
#include "preload/resolve.h"

namespace gpuprof {
namespace {

constexpr size_t kLibraries = static_cast<size_t>(Library::count);

// A copy of the library that the object is linked to; null: to none.
const char* needed_copy(Library library, const Object& object) {
  return dynamic_text(object, DT_NEEDED, file_of_copies(library));
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

void* function_of(const Object& object, const char* name) {
  return object.dynamic ? symbol_in(object.base, object.dynamic, name) : nullptr;
}

void lead_apart(Library library, const Object& object, const Object& copy, const char* soname) {
  bool changed = false;
  const auto lead = [&](ElfW(Addr) place, const ElfW(Sym) & symbol, const char* name) {
    if (symbol.st_shndx != SHN_UNDEF) return;
    const Api api = find_api(name);
    if (api == Api::count || kApiRows[static_cast<size_t>(api)].library != library) return;
    void* const real = function_of(copy, name);
    if (!real || *reinterpret_cast<void**>(place) == real) return;
    store_slot(object, place, real);
    changed = true;
  };
  each_function_slot(object, lead);
  // Data may hold something else by now.
  const Object own = own_object();
  each_address_in_data(object, [&](ElfW(Addr) place, const ElfW(Sym) & symbol, const char* name) {
    if (own.contains(*reinterpret_cast<void**>(place))) lead(place, symbol, name);
  });
  if (changed) tell(soname);
}

// What the object's own copy has for `name`, if hooks call another; the object is led to that copy.
// Its tables alone are read: within constructors, opening it would run others' too early.
void* lead_to_own(Library library, const Object& object, const Hooked& hooked, const char* name) {
  const char* const needed = needed_copy(library, object);
  if (!needed || !hooked.soname || same_text(needed, hooked.soname)) return nullptr;
  const Object copy = object_called(needed);
  // The copy may bear several names.
  void* const own = function_of(copy, name);
  if (!own || own == hooked.function) return nullptr;
  lead_apart(library, object, copy, needed);
  return own;
}

struct NewOnes {
  bool need[kLibraries];
  Hooked hooked[kLibraries];
};

void note_needed(const Object& object, void* raw) {
  NewOnes& found = *static_cast<NewOnes*>(raw);
  for (size_t i = 0; i < kLibraries; ++i) {
    if (needed_copy(static_cast<Library>(i), object)) found.need[i] = true;
  }
}

void lead_all_to_own(const Object& object, void* raw) {
  const NewOnes& found = *static_cast<NewOnes*>(raw);
  for (size_t i = 0; i < kLibraries; ++i) {
    const auto library = static_cast<Library>(i);
    lead_to_own(library, object, found.hooked[i], marking_function(library));
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
  NewOnes found{};
  LoadedObjects done = look_at_loaded(before, loaded, note_needed, &found);
  bool any = false;
  for (size_t i = 0; i < kLibraries; ++i) {
    if (!found.need[i]) continue;
    any = true;
    // Its look-up waits for whoever loads something: from then on all of these are there in whole,
    // their slots filled and their read-only parts protected.
    found.hooked[i] =
        find_hooked(static_cast<Library>(i), marking_function(static_cast<Library>(i)));
  }
  if (any) done = look_at_loaded(before, loaded, lead_all_to_own, &found);
  g_last.count.store(done.count, std::memory_order_relaxed);
  g_last.unloaded.store(done.unloaded, std::memory_order_relaxed);
  // Of those that others unloaded meanwhile some may have been counted instead of new ones.
  if (done.count != loaded.count) g_last.ever.store(0, std::memory_order_relaxed);
}

constinit std::atomic<bool> g_hooks_are_called{false};

}  // namespace

void* own_copys_function(Library library, const void* inside, const char* name) {
  if (!has_libc()) return nullptr;
  const ErrnoGuard keep_errno;
  const Object object = object_at(inside);
  if (!needed_copy(library, object)) return nullptr;
  return lead_to_own(library, object, find_hooked(library, name), name);
}

void lead_copies_apart() {
  if (!has_libc()) return;
  const ErrnoGuard keep_errno;
  g_hooks_are_called.store(true, std::memory_order_relaxed);
  look_at_new_ones();
}

void lead_copies_apart_before_opening() {
  if (!g_hooks_are_called.load(std::memory_order_relaxed)) return;
  const ErrnoGuard keep_errno;
  look_at_new_ones();
}

}  // namespace gpuprof
