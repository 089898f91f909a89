// SPDX-License-Identifier: Apache-2.0
// Dynamic symbols of loaded objects, read from their ELF tables: works before and without dlsym.
#pragma once

#include <link.h>

#include <cstddef>

namespace gpuprof {

// Not libc's: look-ups are made before a sanitizer (or another preloaded library) that replaces
// strcmp is ready.
constexpr bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}
constexpr bool begins_with(const char* text, const char* prefix) {
  while (*prefix != '\0' && *text == *prefix) ++text, ++prefix;
  return *prefix == '\0';
}

// glibc's ld.so relocates such an entry's address in place, but not the vDSO's; musl's leaves
// offsets.
constexpr ElfW(Addr) dynamic_address(ElfW(Addr) base, const ElfW(Dyn) & entry) {
  return entry.d_un.d_ptr < base ? base + entry.d_un.d_ptr : entry.d_un.d_ptr;
}

// Address of `symbol` in the object that lies at `base`, of several versions the default one; null:
// it has none. Allocates nothing, takes no lock.
void* symbol_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* symbol);

// Address of `symbol` in the first loaded object that has it and whose file name begins with
// `soname` (null: in the program itself); null if none. Allocates nothing.
void* symbol_in_loaded(const char* soname, const char* symbol);

// The same of an object that has `mark`, too: the first one whose file name begins with `file`, ""
// for any. Not of the program, of this library in whatever file, nor of what was preloaded before
// it: that finds us when it asks for the next. `path`: its file, as dlopen takes it.
void* symbol_of_others(const char* file, const char* mark, const char* symbol, char* path,
                       size_t path_size);

// Whether the function at the address may ask for the next one and find us: that of this library
// in whatever file, of what was preloaded before it, or of a program that has no `mark`.
bool leads_back(const void* address, const char* mark);
// Whether this library has the next `symbol` after that of the object that `caller` lies in.
bool own_symbol_is_next(const void* caller, const char* symbol);

// The same of the C library, whichever it is: libdl's part of glibc before 2.34, too. With glibc
// it takes no lock, and calls nothing that another library may have replaced.
void* symbol_in_libc(const char* symbol);

// What a call of `symbol` would reach if this library were not there: that of the next library in
// the order of loading up to the C library, or of the first one if this library was loaded later.
// Takes no lock: for signal handlers, and for a child of vfork. Null if none.
void* symbol_after_own(const char* symbol);

}  // namespace gpuprof
