// SPDX-License-Identifier: Apache-2.0
// Loaded objects, and the slots of their global offset tables through which they call functions.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace gpuprof {

struct Object {
  ElfW(Addr) base = 0, end = 0;
  const ElfW(Dyn) * dynamic = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * tables[2] = {};
  size_t counts[2] = {};
  ElfW(Addr) relro_begin = 0, relro_end = 0;

  bool contains(const void* address) const {
    const auto at = reinterpret_cast<ElfW(Addr)>(address);
    return at >= base && at < end;
  }
};

Object read_object(const dl_phdr_info& info);
// Of an entry whose value is a place in the object's strings: the first one that begins so, or
// null.
const char* dynamic_text(const Object& object, ElfW(Sxword) tag, const char* prefix);
// The first loaded object of that soname or file name, which is what one that needs it is bound to.
Object object_called(const char* name);
// The loaded object that the address lies in; one without symbols: none.
Object object_at(const void* address);
Object own_object();
// Its file's name without folders; "": none, or the program. dladdr would look through its symbols.
const char* file_at(const void* address);

constexpr bool is_function_slot(uint64_t info) {
#if defined(__x86_64__)
  return ELF64_R_TYPE(info) == R_X86_64_JUMP_SLOT || ELF64_R_TYPE(info) == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  return ELF64_R_TYPE(info) == R_AARCH64_JUMP_SLOT || ELF64_R_TYPE(info) == R_AARCH64_GLOB_DAT;
#endif
}

// A pointer in the object's data, as in a table of functions, that begins with a symbol's address.
constexpr bool is_address_in_data(const ElfW(Rela) & relocation) {
#if defined(__x86_64__)
  constexpr uint64_t kAddress = R_X86_64_64;
#elif defined(__aarch64__)
  constexpr uint64_t kAddress = R_AARCH64_ABS64;
#endif
  return ELF64_R_TYPE(relocation.r_info) == kAddress && relocation.r_addend == 0 &&
         relocation.r_offset % sizeof(void*) == 0;
}

template <typename Wanted, typename Visit>
void each_symbol_place(const Object& object, const Wanted& wanted, const Visit& visit) {
  if (!object.symbols || !object.strings) return;
  for (int t = 0; t < 2; ++t) {
    for (size_t i = 0; object.tables[t] && i < object.counts[t]; ++i) {
      const ElfW(Rela)& relocation = object.tables[t][i];
      if (!wanted(relocation)) continue;
      const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
      visit(object.base + relocation.r_offset, symbol, object.strings + symbol.st_name);
    }
  }
}

// Calls `visit(place, symbol, name)` for the slots through which the object calls functions.
template <typename Visit>
void each_function_slot(const Object& object, const Visit& visit) {
  const auto wanted = [](const ElfW(Rela) & one) { return is_function_slot(one.r_info); };
  each_symbol_place(object, wanted, visit);
}

// The same of the pointers in its data, if they are aligned.
template <typename Visit>
void each_address_in_data(const Object& object, const Visit& visit) {
  each_symbol_place(object, is_address_in_data, visit);
}

// Writes a slot, also where ld.so has made it read-only (PT_GNU_RELRO). Any thread.
void store_slot(const Object& object, ElfW(Addr) place, void* value);

// Objects of this namespace, in the order of loading.
struct LoadedObjects {
  size_t count;       // now in the process
  uint64_t unloaded;  // since it started
};
LoadedObjects loaded_objects();
// How many were ever loaded: whether there are new ones, without a walk through all.
uint64_t objects_ever_loaded();

// Calls `look` for the objects that were loaded after the one and up to the other, and returns up
// to where: what others unload meanwhile may leave some of them for the next time. It is called
// under a lock of the loader's, by which no object goes away: it must not allocate, nor ask the
// loader for anything but a list of the objects. Opens nothing: within a constructor, opening a
// library that is loaded runs those of libraries whose turn has not come.
using ObjectLook = void (*)(const Object& object, void* context);
LoadedObjects look_at_loaded(const LoadedObjects& after, const LoadedObjects& up_to,
                             ObjectLook look, void* context);

// Calls `visit` for the objects that were loaded since then, but not for this library. It may do so
// for some again that were there before. Each is kept open meanwhile, by `kept`. Not within
// constructors of objects that were loaded since then.
using ObjectVisit = void (*)(const Object& object, void* kept, void* context);
void each_loaded_since(const LoadedObjects& before, ObjectVisit visit, void* context);
// The same of all, with none kept: for a thread that opens this library, within its constructor. It
// has the loader's lock, so that nothing goes away, and opens none of those that are constructed.
void each_loaded_while_opened(ObjectVisit visit, void* context);

// What a direct dependency of the object has for a name, or null: what a handle of the object would
// mostly find.
void* symbol_of_needed(const Object& object, const char* name);

}  // namespace gpuprof
