// SPDX-License-Identifier: Apache-2.0
#include "preload/objects/object_slots.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "preload/objects/elf_symbols.h"

namespace gpuprof {
namespace {

// Of the pages below; a few system calls, nothing else is done while it is held.
constinit Mutex g_page_lock;

void unlock_pages_in_child() { g_page_lock.unlock(); }

void survive_fork() {
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) at_fork_in_child(unlock_pages_in_child);
}

// As dlopen takes it; "" is the program.
struct Name {
  char text[512];
};
constexpr size_t kNamesAtOnce = 4;  // or objects; on the stack of whoever calls dlopen

// Noted under the loader's lock, looked at after: looking names up takes other locks of the loader.
template <typename Item>
struct Found {
  size_t skip;
  size_t seen;
  size_t count;
  Item items[kNamesAtOnce];

  bool is_full() const { return seen >= skip && count == kNamesAtOnce; }
  // Where to note the next object; null: it was there before.
  Item* next() { return seen++ < skip ? nullptr : &items[count++]; }
};

int note_name(dl_phdr_info* info, size_t, void* raw) {
  Found<Name>& found = *static_cast<Found<Name>*>(raw);
  if (found.is_full()) return 1;
  Name* const out = found.next();
  if (!out) return 0;
  const char* const name = info->dlpi_name ? info->dlpi_name : "";
  const size_t length = std::strlen(name);
  // What has too long a name is opened as nothing.
  std::memcpy(out->text, length < sizeof out->text ? name : "/",
              length < sizeof out->text ? length + 1 : 2);
  return 0;
}

// Where objects stay.
int note_object(dl_phdr_info* info, size_t, void* raw) {
  Found<Object>& found = *static_cast<Found<Object>*>(raw);
  if (found.is_full()) return 1;
  if (Object* const out = found.next()) *out = read_object(*info);
  return 0;
}

struct Search {
  const void* inside;
  ElfW(Addr) base;  // where nothing is looked for
  Object object;
};

int read_if_it(dl_phdr_info* info, size_t, void* raw) {
  Search& search = *static_cast<Search*>(raw);
  if (!search.inside && info->dlpi_addr != search.base) return 0;
  const Object object = read_object(*info);
  if (search.inside && !object.contains(search.inside)) return 0;
  search.object = object;
  return 1;
}

struct FileSearch {
  const void* inside;
  const char* file;
};

int name_if_it(dl_phdr_info* info, size_t, void* raw) {
  FileSearch& search = *static_cast<FileSearch*>(raw);
  if (!read_object(*info).contains(search.inside)) return 0;
  const char* const path = info->dlpi_name ? info->dlpi_name : "";
  const char* const slash = std::strrchr(path, '/');
  search.file = slash ? slash + 1 : path;
  return 1;
}

int count_one(dl_phdr_info* info, size_t, void* raw) {
  LoadedObjects& loaded = *static_cast<LoadedObjects*>(raw);
  ++loaded.count;
  loaded.unloaded = info->dlpi_subs;
  return 0;
}

struct Walk {
  LoadedObjects after, up_to;
  ObjectLook look;
  void* context;
  size_t at;
  LoadedObjects done;
};

// What was unloaded since then may have stood before what is new, or been of it.
size_t place_now(const LoadedObjects& then, uint64_t unloaded) {
  const uint64_t gone = unloaded - then.unloaded;
  return then.count > gone ? then.count - gone : 0;
}

int look_at_one(dl_phdr_info* info, size_t, void* raw) {
  Walk& walk = *static_cast<Walk*>(raw);
  walk.done = {place_now(walk.up_to, info->dlpi_subs), info->dlpi_subs};
  const size_t at = walk.at++;
  if (at >= walk.done.count) return 1;
  if (at >= place_now(walk.after, info->dlpi_subs)) walk.look(read_object(*info), walk.context);
  return 0;
}

struct NameSearch {
  const char* name;
  Object object;
};

int read_if_called(dl_phdr_info* info, size_t, void* raw) {
  NameSearch& search = *static_cast<NameSearch*>(raw);
  const char* const path = info->dlpi_name ? info->dlpi_name : "";
  const char* const slash = std::strrchr(path, '/');
  const Object object = read_object(*info);
  const char* const soname = dynamic_text(object, DT_SONAME, "");
  const bool called = (soname && std::strcmp(soname, search.name) == 0) ||
                      std::strcmp(slash ? slash + 1 : path, search.name) == 0;
  if (called) search.object = object;
  return called;
}

int note_loaded(dl_phdr_info* info, size_t, void* raw) {
  *static_cast<uint64_t*>(raw) = info->dlpi_adds;
  return 1;
}

// Another thread may be about to load this object, or to unload it. Opening it again waits until it
// is there in whole, its read-only parts protected, and keeps it meanwhile.
void visit_by_name(const Name& name, ObjectVisit visit, void* context) {
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
  if (!search.object.contains(reinterpret_cast<void*>(&visit_by_name))) {
    visit(search.object, kept, context);
  }
  ::dlclose(kept);
  ::dlerror();
}

}  // namespace

Object read_object(const dl_phdr_info& info) {
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
  object.dynamic = entry;
  for (; entry && entry->d_tag != DT_NULL; ++entry) {
    const auto* const table =
        reinterpret_cast<const ElfW(Rela)*>(dynamic_address(object.base, *entry));
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

const char* dynamic_text(const Object& object, ElfW(Sxword) tag, const char* prefix) {
  if (!object.dynamic || !object.strings) return nullptr;
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    const char* const text = object.strings + entry->d_un.d_val;
    if (entry->d_tag == tag && begins_with(text, prefix)) return text;
  }
  return nullptr;
}

Object object_called(const char* name) {
  NameSearch search{name, {}};
  ::dl_iterate_phdr(read_if_called, &search);
  return search.object;
}

Object object_at(const void* address) {
  Search search{address, 0, {}};
  ::dl_iterate_phdr(read_if_it, &search);
  return search.object;
}

const char* file_at(const void* address) {
  FileSearch search{address, ""};
  ::dl_iterate_phdr(name_if_it, &search);
  return search.file;
}

Object own_object() { return object_at(reinterpret_cast<void*>(&own_object)); }

// ld.so has made the part named by PT_GNU_RELRO read-only, in whole pages. Two threads may come to
// one page: what each has opened must hold until it has written.
void store_slot(const Object& object, ElfW(Addr) place, void* value) {
  const auto page = static_cast<ElfW(Addr)>(::getpagesize());
  const ElfW(Addr) begin = place & ~(page - 1);
  const bool read_only =
      place >= (object.relro_begin & ~(page - 1)) && place < (object.relro_end & ~(page - 1));
  void* const pages = reinterpret_cast<void*>(begin);
  survive_fork();
  const LockGuard guard(g_page_lock);
  if (*reinterpret_cast<void**>(place) == value) return;
  if (read_only && ::mprotect(pages, page, PROT_READ | PROT_WRITE) != 0) return;
  *reinterpret_cast<void**>(place) = value;
  if (read_only) ::mprotect(pages, page, PROT_READ);
}

LoadedObjects loaded_objects() {
  LoadedObjects loaded{};
  ::dl_iterate_phdr(count_one, &loaded);
  return loaded;
}

uint64_t objects_ever_loaded() {
  uint64_t count = 0;
  ::dl_iterate_phdr(note_loaded, &count);
  return count;
}

LoadedObjects look_at_loaded(const LoadedObjects& after, const LoadedObjects& up_to,
                             ObjectLook look, void* context) {
  survive_fork();  // it may allocate, which the loader's lock does not allow
  Walk walk{after, up_to, look, context, 0, up_to};
  ::dl_iterate_phdr(look_at_one, &walk);
  return walk.done;
}

void each_loaded_since(const LoadedObjects& before, ObjectVisit visit, void* context) {
  const ErrnoGuard keep_errno;
  Found<Name> found;
  found.skip = place_now(before, loaded_objects().unloaded);
  bool more = true;
  while (more) {
    found.seen = found.count = 0;
    more = ::dl_iterate_phdr(note_name, &found) != 0;
    for (size_t i = 0; i < found.count; ++i) visit_by_name(found.items[i], visit, context);
    found.skip = found.seen;
  }
}

void each_loaded_while_opened(ObjectVisit visit, void* context) {
  const ErrnoGuard keep_errno;
  Found<Object> found;
  found.skip = 0;
  bool more = true;
  while (more) {
    found.seen = found.count = 0;
    more = ::dl_iterate_phdr(note_object, &found) != 0;
    for (size_t i = 0; i < found.count; ++i) {
      const bool own = found.items[i].contains(reinterpret_cast<void*>(&each_loaded_while_opened));
      if (!own) visit(found.items[i], nullptr, context);
    }
    found.skip = found.seen;
  }
}

void* symbol_of_needed(const Object& object, const char* name) {
  if (!object.dynamic || !object.strings) return nullptr;
  for (const ElfW(Dyn)* entry = object.dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED) continue;
    const Object needed = object_called(object.strings + entry->d_un.d_val);
    void* const found = needed.dynamic ? symbol_in(needed.base, needed.dynamic, name) : nullptr;
    if (found) return found;
  }
  return nullptr;
}

}  // namespace gpuprof
