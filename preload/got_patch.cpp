// SPDX-License-Identifier: Apache-2.0
#include "preload/got_patch.h"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "preload/elf_symbols.h"
#include "preload/heap_hooks.h"
#include "preload/process_hooks.h"
#include "preload/resolve.h"
#include "preload/torch_hooks.h"

// Of the assembler part.
extern "C" [[gnu::visibility("hidden")]] char gpuprof_own_dlsym[], gpuprof_own_dlvsym[],
    gpuprof_own_dlopen[];

namespace gpuprof {
namespace {

struct Object {
  ElfW(Addr) base = 0, end = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * tables[2] = {};
  size_t counts[2] = {};
  ElfW(Addr) relro_begin = 0, relro_end = 0;
};

Object read(const dl_phdr_info& info) {
  Object object;
  object.base = info.dlpi_addr;
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    const ElfW(Addr) begin = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && begin + header.p_memsz > object.end) {
      object.end = begin + header.p_memsz;
    }
    if (header.p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_GNU_RELRO) {
      object.relro_begin = begin;
      object.relro_end = begin + header.p_memsz;
    }
  }
  for (; entry && entry->d_tag != DT_NULL; ++entry) {
    // ld.so has relocated these addresses in place.
    const auto* const table = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB: object.symbols = reinterpret_cast<const ElfW(Sym)*>(table); break;
      case DT_STRTAB: object.strings = reinterpret_cast<const char*>(table); break;
      case DT_RELA: object.tables[0] = table; break;
      case DT_RELASZ: object.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_JMPREL: object.tables[1] = table; break;
      case DT_PLTRELSZ: object.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      default: break;
    }
  }
  return object;
}

constexpr bool is_function_slot(uint64_t info) {
#if defined(__x86_64__)
  return ELF64_R_TYPE(info) == R_X86_64_JUMP_SLOT || ELF64_R_TYPE(info) == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  return ELF64_R_TYPE(info) == R_AARCH64_JUMP_SLOT || ELF64_R_TYPE(info) == R_AARCH64_GLOB_DAT;
#endif
}

// What a slot is bound to, or would be at its first call: until then it leads into the object's own
// procedure linkage table, and the scope of `handle` tells.
void* bound_to(const Object& object, ElfW(Addr) place, void* handle, Api api, const char* name) {
  void* const now = *reinterpret_cast<void**>(place);
  const auto address = reinterpret_cast<ElfW(Addr)>(now);
  if (address < object.base || address >= object.end) return now;
  void* const real = handle ? real_dlsym()(handle, name) : nullptr;
  return real ? real : find_real(api);
}

// Whether the object calls, or will, what ours calls in turn: not a function of that name of its
// own libraries (RTLD_DEEPBIND).
bool leads_where_ours_does(const Object& object, ElfW(Addr) place, void* handle, const char* name) {
  void* target = *reinterpret_cast<void**>(place);
  const auto address = reinterpret_cast<ElfW(Addr)>(target);
  if (address >= object.base && address < object.end) {  // its linkage table: not bound yet
    target = handle ? real_dlsym()(handle, name) : nullptr;
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
  if (!slot.get()) slot.set(real);
  // A second library of the same name (another CUDA version) is not ours to redirect.
  return slot.get() == real ? slot.wrapper : nullptr;
}

// Likewise, of functions that give host memory. An allocator's calls of itself stay, but for
// libc's: its other functions allocate by the names that everybody uses.
void* heap_replacement(const Object& object, ElfW(Addr) place, void* handle,
                       const ElfW(Sym) & symbol, const char* name) {
  const HeapHook* const row = heap_hook(name);
  if (!row || !row->real) return nullptr;
  const auto inside = [&](const void* address) {
    const auto at = reinterpret_cast<ElfW(Addr)>(address);
    return at >= object.base && at < object.end;
  };
  const bool is_libc = inside(reinterpret_cast<void*>(::gnu_get_libc_version));
  const bool allocates = inside(heap_hook("malloc")->real);
  if (allocates && (row->maps || !is_libc)) return nullptr;
  if (symbol.st_shndx != SHN_UNDEF && !is_libc) return nullptr;
  void* const now = *reinterpret_cast<void**>(place);
  if (now == row->real) return row->hook;
  // Not bound yet: it leads into the object's own procedure linkage table.
  if (!inside(now) || !handle) return nullptr;
  void* const found = real_dlsym()(handle, name);
  const bool same = found == row->real || found == real_dlsym()(RTLD_DEFAULT, name);
  return found && same ? row->hook : nullptr;
}

// Likewise, of libc10's, which it calls through slots itself; not of one that is part of another
// object.
void* torch_replacement(const Object& object, bool foreign, const char* name) {
  void* real = nullptr;
  void* const hook = torch_hook(name, real);
  const auto address = reinterpret_cast<ElfW(Addr)>(real);
  if (!hook || !real) return nullptr;
  return foreign || (address >= object.base && address < object.end) ? hook : nullptr;
}

// Of the pages below; a few system calls, nothing else is done while it is held.
constinit Mutex g_page_lock;

void unlock_pages_in_child() { g_page_lock.unlock(); }

void survive_fork() {
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) at_fork_in_child(unlock_pages_in_child);
}

// ld.so has made the part named by PT_GNU_RELRO read-only, in whole pages. Two threads may come to
// one page: what each has opened must hold until it has written.
void store(const Object& object, ElfW(Addr) place, void* value) {
  const auto page = static_cast<ElfW(Addr)>(::getpagesize());
  const ElfW(Addr) begin = place & ~(page - 1);
  const bool read_only =
      place >= (object.relro_begin & ~(page - 1)) && place < (object.relro_end & ~(page - 1));
  void* const pages = reinterpret_cast<void*>(begin);
  const LockGuard guard(g_page_lock);
  if (*reinterpret_cast<void**>(place) == value) return;
  if (read_only && ::mprotect(pages, page, PROT_READ | PROT_WRITE) != 0) return;
  *reinterpret_cast<void**>(place) = value;
  if (read_only) ::mprotect(pages, page, PROT_READ);
}

// Calls `visit(place, symbol, name)` for the slots through which the object calls functions.
template <typename Visit>
void each_function_slot(const Object& object, const Visit& visit) {
  if (!object.symbols || !object.strings) return;
  for (int t = 0; t < 2; ++t) {
    for (size_t i = 0; object.tables[t] && i < object.counts[t]; ++i) {
      const ElfW(Rela)& relocation = object.tables[t][i];
      if (!is_function_slot(relocation.r_info)) continue;
      const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
      visit(object.base + relocation.r_offset, symbol, object.strings + symbol.st_name);
    }
  }
}

void patch(const Object& object, void* handle, PatchedCalls calls) {
  const bool all = calls == PatchedCalls::all, heap = heap_calls_are_patched();
  each_function_slot(object, [&](ElfW(Addr) place, const ElfW(Sym) & symbol, const char* name) {
    // Defined by the object itself: a runtime of its own, which its cuGetProcAddress shows.
    const bool foreign = symbol.st_shndx == SHN_UNDEF;
    void* wanted = all ? torch_replacement(object, foreign, name) : nullptr;
    if (!wanted && foreign && all) wanted = replacement(object, place, handle, name);
    if (!wanted && heap) wanted = heap_replacement(object, place, handle, symbol, name);
    if (wanted) store(object, place, wanted);
  });
}

// As dlopen takes it; "" is the program.
struct Name {
  char text[512];
};
constexpr size_t kNamesAtOnce = 4;  // on the stack of whoever calls dlopen

// Noted under the loader's lock, looked at after: looking names up takes other locks of the loader.
struct Found {
  size_t skip;
  size_t seen;
  size_t count;
  Name names[kNamesAtOnce];
};

int note_name(dl_phdr_info* info, size_t, void* raw) {
  Found& found = *static_cast<Found*>(raw);
  if (found.seen++ < found.skip || found.count == kNamesAtOnce) return 0;
  const char* const name = info->dlpi_name ? info->dlpi_name : "";
  Name& out = found.names[found.count++];
  const size_t length = std::strlen(name);
  // What has too long a name is opened as nothing.
  std::memcpy(out.text, length < sizeof out.text ? name : "/",
              length < sizeof out.text ? length + 1 : 2);
  return 0;
}

struct Search {
  ElfW(Addr) base;
  Object object;
};

int read_if_it(dl_phdr_info* info, size_t, void* raw) {
  Search& search = *static_cast<Search*>(raw);
  if (info->dlpi_addr != search.base) return 0;
  search.object = read(*info);
  return 1;
}

int count_one(dl_phdr_info* info, size_t, void* raw) {
  LoadedObjects& loaded = *static_cast<LoadedObjects*>(raw);
  ++loaded.count;
  loaded.unloaded = info->dlpi_subs;
  return 0;
}

bool is_ours(const Object& object) {
  const auto own = reinterpret_cast<ElfW(Addr)>(&is_ours);
  return own >= object.base && own < object.end;
}

int read_if_ours(dl_phdr_info* info, size_t, void* raw) {
  const Object object = read(*info);
  if (!is_ours(object)) return 0;
  *static_cast<Object*>(raw) = object;
  return 1;
}

// Another thread may be about to load this object, or to unload it. Opening it again waits until it
// is there in whole, its read-only parts protected, and keeps it meanwhile.
void patch_by_name(const Name& name, void* handle, PatchedCalls calls) {
  void* const kept = ::dlopen(name.text[0] ? name.text : nullptr, RTLD_LAZY | RTLD_NOLOAD);
  if (!kept) {
    ::dlerror();  // the program did not ask
    return;
  }
  link_map* map = nullptr;
  Search search{};
  if (::dlinfo(kept, RTLD_DI_LINKMAP, &map) == 0 && map) {
    search.base = map->l_addr;
    ::dl_iterate_phdr(read_if_it, &search);
  }
  if (!is_ours(search.object)) patch(search.object, handle ? handle : kept, calls);
  ::dlclose(kept);
  ::dlerror();
}

}  // namespace

LoadedObjects loaded_objects() {
  LoadedObjects loaded{};
  ::dl_iterate_phdr(count_one, &loaded);
  return loaded;
}

void* called_by_us(const char* name) {
  Object own;
  ::dl_iterate_phdr(read_if_ours, &own);
  void* found = nullptr;
  each_function_slot(own, [&](ElfW(Addr) place, const ElfW(Sym)&, const char* called) {
    if (same_text(called, name)) found = *reinterpret_cast<void**>(place);
  });
  return found;
}

void patch_loaded_since(const LoadedObjects& before, void* handle, PatchedCalls calls) {
  const ErrnoGuard keep_errno;
  survive_fork();
  // What other threads have unloaded meanwhile may have stood before what is new.
  const uint64_t gone = loaded_objects().unloaded - before.unloaded;
  Found found;
  found.skip = before.count > gone ? before.count - gone : 0;
  do {
    found.seen = found.count = 0;
    ::dl_iterate_phdr(note_name, &found);
    for (size_t i = 0; i < found.count; ++i) {
      patch_by_name(found.names[i], handle, calls);
    }
    found.skip += found.count;
  } while (found.count == kNamesAtOnce);
}

}  // namespace gpuprof
