// SPDX-License-Identifier: Apache-2.0
#include "preload/objects/elf_symbols.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "collector/base/idle.h"

// glibc's list of loaded objects: an object's place never changes, new ones come last. Others have
// none of this name.
[[gnu::weak]] extern struct r_debug _r_debug;
// This library's own, by which it is known in the list.
[[gnu::visibility("hidden")]] extern ElfW(Dyn) _DYNAMIC[];

namespace gpuprof {
namespace {

struct DynamicTables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* hash = nullptr;  // what linkers wrote before there was the other
  const ElfW(Half) * versions = nullptr;
};

DynamicTables tables_of(ElfW(Addr) base, const ElfW(Dyn) * entry) {
  DynamicTables tables;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) address = dynamic_address(base, *entry);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = reinterpret_cast<const uint32_t*>(address);
    if (entry->d_tag == DT_HASH) tables.hash = reinterpret_cast<const uint32_t*>(address);
    if (entry->d_tag == DT_VERSYM) tables.versions = reinterpret_cast<const ElfW(Half)*>(address);
  }
  return tables;
}

uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

// Of a symbol with several versions the default one: the others are hidden.
bool is_wanted(const DynamicTables& tables, uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = tables.symbols[index];
  const bool hidden = tables.versions && (tables.versions[index] & 0x8000);
  return symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) != STT_TLS && !hidden &&
         same_text(tables.strings + symbol.st_name, name);
}

// https://flapenguin.me/elf-dt-gnu-hash: header, bloom filter, buckets, chains.
const ElfW(Sym) * find_by_gnu_hash(const DynamicTables& tables, const char* name) {
  const uint32_t buckets = tables.gnu_hash[0], first = tables.gnu_hash[1];
  const uint32_t bloom_words = tables.gnu_hash[2];
  const uint32_t* const bucket = reinterpret_cast<const uint32_t*>(
      reinterpret_cast<const ElfW(Addr)*>(tables.gnu_hash + 4) + bloom_words);
  const uint32_t* const chain = bucket + buckets;
  const uint32_t hash = gnu_hash_of(name);
  if (buckets == 0) return nullptr;
  uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const uint32_t link = chain[index - first];
    if ((link | 1) == (hash | 1) && is_wanted(tables, index, name)) return &tables.symbols[index];
    if (link & 1) return nullptr;
  }
}

// System V ABI, "Hash Table": numbers of buckets and of chains, buckets, chains.
const ElfW(Sym) * find_by_hash(const DynamicTables& tables, const char* name) {
  uint32_t hash = 0;
  for (const char* at = name; *at; ++at) {
    hash = (hash << 4) + static_cast<uint8_t>(*at);
    hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
  }
  const uint32_t buckets = tables.hash[0];
  const uint32_t* const bucket = tables.hash + 2;
  const uint32_t* const chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  for (uint32_t index = bucket[hash % buckets]; index != STN_UNDEF; index = chain[index]) {
    if (is_wanted(tables, index, name)) return &tables.symbols[index];
  }
  return nullptr;
}

const char* file_of(const char* path) {
  const char* file = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') file = path + 1;
  }
  return file;
}

struct Search {
  const char* soname;
  const char* symbol;
  size_t at;
  void* found;
};

struct OtherSearch {
  const char* file;
  const char* mark;
  const char* symbol;
  char* path;
  size_t path_size;
  bool before_own;  // what was preloaded before this library
  size_t at;
  void* found;
};

struct NextSearch {
  const void* caller;
  const char* symbol;
  bool asked;  // the caller's object has been
  bool own;
};

struct BackSearch {
  const void* address;
  const char* mark;
  bool before_own;
  size_t at;
  bool back;
};

// Exported by this library in each of its files.
constexpr const char* kOwnName = "gpuprof_first_copy";

GPUPROF_IDLE_CODE const ElfW(Dyn) * dynamic_of(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    return reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
  }
  return nullptr;
}

bool lies_in(const dl_phdr_info& object, const void* address) {
  const auto at = reinterpret_cast<ElfW(Addr)>(address);
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    const ElfW(Addr) begin = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && at >= begin && at - begin < header.p_memsz) return true;
  }
  return false;
}

GPUPROF_IDLE_CODE int visit(dl_phdr_info* object, size_t, void* raw) {
  Search& search = *static_cast<Search*>(raw);
  const char* const path = object->dlpi_name ? object->dlpi_name : "";
  const bool is_program = search.at++ == 0;  // always the first
  if (search.soname ? !begins_with(file_of(path), search.soname) : !is_program) return 0;
  const ElfW(Dyn)* const dynamic = dynamic_of(*object);
  if (dynamic) search.found = symbol_in(object->dlpi_addr, dynamic, search.symbol);
  return search.found != nullptr;
}

int visit_other(dl_phdr_info* object, size_t, void* raw) {
  OtherSearch& search = *static_cast<OtherSearch*>(raw);
  const char* const path = object->dlpi_name ? object->dlpi_name : "";
  const ElfW(Dyn)* const dynamic = dynamic_of(*object);
  const bool is_program = search.at++ == 0, before_own = search.before_own;
  if (dynamic == _DYNAMIC) search.before_own = false;
  if (is_program || before_own || !dynamic || !begins_with(file_of(path), search.file)) return 0;
  const ElfW(Addr) base = object->dlpi_addr;
  void* const found = symbol_in(base, dynamic, search.symbol);
  size_t length = 0;
  while (path[length] != '\0') ++length;
  if (!found || length >= search.path_size || !symbol_in(base, dynamic, search.mark)) return 0;
  if (symbol_in(base, dynamic, kOwnName)) return 0;
  for (size_t k = 0; k <= length; ++k) search.path[k] = path[k];
  search.found = found;
  return 1;
}

int visit_next(dl_phdr_info* object, size_t, void* raw) {
  NextSearch& search = *static_cast<NextSearch*>(raw);
  const ElfW(Dyn)* const dynamic = dynamic_of(*object);
  if (!search.asked) {
    search.asked = lies_in(*object, search.caller);
    return dynamic == _DYNAMIC;  // it asks for what comes after us
  }
  search.own = dynamic == _DYNAMIC;
  return search.own || (dynamic && symbol_in(object->dlpi_addr, dynamic, search.symbol));
}

int visit_back(dl_phdr_info* object, size_t, void* raw) {
  BackSearch& search = *static_cast<BackSearch*>(raw);
  const ElfW(Dyn)* const dynamic = dynamic_of(*object);
  const auto has = [&](const char* name) { return symbol_in(object->dlpi_addr, dynamic, name); };
  const bool is_program = search.at++ == 0, before_own = search.before_own;
  if (dynamic == _DYNAMIC) search.before_own = false;
  if (!dynamic || !lies_in(*object, search.address)) return 0;
  search.back = has(kOwnName) || (before_own && (!is_program || !has(search.mark)));
  return 1;
}

GPUPROF_IDLE_CODE bool is_libc(const link_map* object) {
  return same_text(file_of(object->l_name), "libc.so.6");
}

// This library in the list; libc or null where it was loaded later (injection.h).
GPUPROF_IDLE_CODE const link_map* own_or_libc() {
  const link_map* own = &_r_debug ? _r_debug.r_map : nullptr;
  while (own && own->l_ld != _DYNAMIC && !is_libc(own)) own = own->l_next;
  return own;
}

bool was_preloaded() {
  const link_map* const own = own_or_libc();
  return own && own->l_ld == _DYNAMIC;
}

}  // namespace

void* symbol_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* symbol) {
  const DynamicTables tables = tables_of(base, dynamic);
  if (!tables.symbols || !tables.strings || !(tables.gnu_hash || tables.hash)) return nullptr;
  const ElfW(Sym)* const found =
      tables.gnu_hash ? find_by_gnu_hash(tables, symbol) : find_by_hash(tables, symbol);
  if (!found) return nullptr;
  const ElfW(Addr) address = base + found->st_value;
  if (ELF64_ST_TYPE(found->st_info) != STT_GNU_IFUNC) return reinterpret_cast<void*>(address);
  // AArch64's resolvers are told of the processor; those of x86-64 take nothing.
  return reinterpret_cast<void* (*)(uint64_t)>(address)(::getauxval(AT_HWCAP));
}

void* symbol_of_others(const char* file, const char* mark, const char* symbol, char* path,
                       size_t path_size) {
  OtherSearch search{file, mark, symbol, path, path_size, was_preloaded(), 0, nullptr};
  ::dl_iterate_phdr(visit_other, &search);
  return search.found;
}

bool leads_back(const void* address, const char* mark) {
  BackSearch search{address, mark, was_preloaded(), 0, false};
  ::dl_iterate_phdr(visit_back, &search);
  return search.back;
}

bool own_symbol_is_next(const void* caller, const char* symbol) {
  NextSearch search{caller, symbol, false, false};
  ::dl_iterate_phdr(visit_next, &search);
  return search.own;
}

GPUPROF_IDLE_CODE void* symbol_in_loaded(const char* soname, const char* symbol) {
  Search search{soname, symbol, 0, nullptr};
  ::dl_iterate_phdr(visit, &search);
  return search.found;
}

GPUPROF_IDLE_CODE void* symbol_in_libc(const char* symbol) {
  if (&_r_debug && _r_debug.r_map) {
    // glibc; glibc before 2.34.
    for (const char* soname : {"libc.so.6", "libdl.so.2"}) {
      for (const link_map* object = _r_debug.r_map; object; object = object->l_next) {
        if (!same_text(file_of(object->l_name), soname)) continue;
        if (void* const found = symbol_in(object->l_addr, object->l_ld, symbol)) return found;
        break;
      }
    }
    return nullptr;
  }
  // musl under the names of its loader.
  for (const char* soname : {"libc.so.6", "libdl.so.2", "ld-musl-", "libc.musl-", "libc.so"}) {
    if (void* const found = symbol_in_loaded(soname, symbol)) return found;
  }
  return nullptr;
}

GPUPROF_IDLE_CODE void* symbol_after_own(const char* symbol) {
  // What stands behind libc was loaded later, and may go away while this looks.
  const link_map* const first = &_r_debug ? _r_debug.r_map : nullptr;
  const link_map* const own = own_or_libc();
  // Where this library itself was loaded later (injection.h), no order has it: all count.
  const bool in_order = own && own->l_ld == _DYNAMIC;
  for (const link_map* object = in_order ? own->l_next : first; object; object = object->l_next) {
    if (void* const found = symbol_in(object->l_addr, object->l_ld, symbol)) return found;
    if (is_libc(object)) break;
  }
  return symbol_in_libc(symbol);
}

}  // namespace gpuprof
