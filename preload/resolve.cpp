// SPDX-License-Identifier: Apache-2.0
#include "preload/resolve.h"

#include <dlfcn.h>

#include <atomic>

#include "collector/base/idle.h"
#include "collector/base/libc.h"
#include "preload/objects/elf_symbols.h"
#include "preload/objects/object_slots.h"

namespace gpuprof {
namespace {

constexpr size_t kLongestPath = 1024;

HookSlot g_slots[kApiCount];

// How a copy of each library is known: what its file is called, if nobody has renamed it, and a
// function that has no row and that every version has.
struct Copies {
  const char* file;
  const char* function;
};
constexpr Copies kCopies[] = {{"libcudart", "cudaGetLastError"},
                              {"libcuda.so", "cuDriverGetVersion"},
                              {"libnccl", "ncclGetVersion"},
                              {"libcupti", "cuptiGetVersion"}};
static_assert(sizeof kCopies / sizeof kCopies[0] == static_cast<size_t>(Library::count));

// Handle of the copy that hooks call where none is in the global scope (a library opened RTLD_LOCAL
// is not in RTLD_NEXT's): the first that was asked, for good.
constinit std::atomic<void*> g_chosen[static_cast<size_t>(Library::count)]{};

// A function of the copy whose functions the program looked up first, which fills hooks before one
// finds its own. Nothing keeps that copy: until a hook does, the program may close it.
constinit std::atomic<void*> g_used[static_cast<size_t>(Library::count)]{};

// Of a file that has another name, too: wheels' tools rename those that they bundle.
void* in_any_copy(Library library, const char* name, char* path, size_t path_size) {
  const Copies& copies = kCopies[static_cast<size_t>(library)];
  void* const found = symbol_of_others(copies.file, copies.function, name, path, path_size);
  return found ? found : symbol_of_others("", copies.function, name, path, path_size);
}

// Past this library in another file: its hooks would look for the function in turn.
void* in_next(Library library, const char* name) {
  void* const found = real_dlsym()(RTLD_NEXT, name);
  return found && !leads_back(found, marking_function(library)) ? found : nullptr;
}

// The copy that the function lies in; none of a tool that stands before some functions. The empty
// bodies (GPUPROF_NOP) have no hook of dlsym: nothing is noted there.
#ifdef GPUPROF_NOP
Object copy_at(Library, const void*) { return {}; }
#else
Object copy_at(Library library, const void* function) {
  const Object copy = function ? object_at(function) : Object{};
  const bool is_copy =
      copy.dynamic && symbol_in(copy.base, copy.dynamic, marking_function(library));
  return is_copy ? copy : Object{};
}
#endif

// Of the copy that was used first, which may have been closed: something else may be there. `next`:
// in_next(), which a tool that was preloaded has for itself.
void* in_used(Library library, const char* name, const void* next) {
  void* const used = g_used[static_cast<size_t>(library)].load(std::memory_order_acquire);
  if (!used || (next && !copy_at(library, next).dynamic)) return nullptr;
  const Object copy = copy_at(library, used);
  return copy.dynamic ? symbol_in(copy.base, copy.dynamic, name) : nullptr;
}

void* in_used_or_next(Library library, const char* name) {
  void* const next = in_next(library, name);
  void* const used = in_used(library, name, next);
  return used ? used : next;
}

// Takes a reference, kept on purpose: what a hook calls must stay mapped.
void* keep_file(Library library, const char* path, const char* name, bool before_global) {
  void* const handle = ::dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return nullptr;
  const size_t at = static_cast<size_t>(library);
  void* expected = nullptr;
  // Only a copy that stands for the library.
  if ((before_global || !real_dlsym()(RTLD_NEXT, kCopies[at].function)) &&
      real_dlsym()(handle, kCopies[at].function)) {
    g_chosen[at].compare_exchange_strong(expected, handle);
  }
  void* const found = real_dlsym()(handle, name);
  ::dlerror();  // of what RTLD_NEXT has not, which the program did not ask for
  return found;
}

void* keep_copy(Library library, const char* name) {
  char path[kLongestPath];
  if (!::dlopen || !in_any_copy(library, name, path, sizeof path)) return nullptr;
  return keep_file(library, path, name, false);  // what is global goes before it ever after
}

void* keep_used(Library library, void* used, const char* name) {
  Dl_info info{};
  return ::dladdr(used, &info) ? keep_file(library, info.dli_fname, name, true) : nullptr;
}

}  // namespace

HookSlot& hook_slot(Api api) { return g_slots[static_cast<size_t>(api)]; }

[[gnu::noinline]] void fill_slot(Api api, void* wrapper, void* (*get)(), void (*set)(void* real)) {
  hook_slot(api) = {wrapper, get, set};
}

GPUPROF_IDLE_CODE SymbolLookup real_dlsym() {
  GPUPROF_IDLE_DATA static constinit std::atomic<SymbolLookup> found{nullptr};
  if (const SymbolLookup function = found.load(std::memory_order_acquire)) return function;
  const auto function = reinterpret_cast<SymbolLookup>(symbol_in_libc("dlsym"));
  if (function) found.store(function, std::memory_order_release);
  return function;
}

void* find_real(Api api) {
  const ApiRow& row = kApiRows[static_cast<size_t>(api)];
  const SymbolLookup lookup = real_dlsym();
  if (!lookup) return nullptr;
  void* const chosen = g_chosen[static_cast<size_t>(row.library)].load(std::memory_order_acquire);
  void* const found = chosen ? lookup(chosen, row.name) : nullptr;
  if (found) return found;
  void* const next = in_next(row.library, row.name);
  void* const used = in_used(row.library, row.name, next);
  if (used && used != next) {
    if (void* const kept = keep_used(row.library, used, row.name)) return kept;
  }
  return next ? next : keep_copy(row.library, row.name);
}

void note_used_copy(Library library, void* function) {
  std::atomic<void*>& used = g_used[static_cast<size_t>(library)];
  if (copy_at(library, used.load(std::memory_order_acquire)).dynamic) return;
  used.store(function, std::memory_order_release);
}

void* function_of_hooked_copy(Library library, const char* name) {
  const SymbolLookup lookup = real_dlsym();
  if (!lookup) return nullptr;
  void* const chosen = g_chosen[static_cast<size_t>(library)].load(std::memory_order_acquire);
  if (void* const found = chosen ? lookup(chosen, name) : in_used_or_next(library, name)) {
    return found;
  }
  ::dlerror();  // the program did not ask
  char path[kLongestPath];
  return in_any_copy(library, name, path, sizeof path);
}

const char* marking_function(Library library) {
  return kCopies[static_cast<size_t>(library)].function;
}

const char* file_of_copies(Library library) { return kCopies[static_cast<size_t>(library)].file; }

bool belongs_to_hooks(Api api, const void* real) {
  const ApiRow& row = kApiRows[static_cast<size_t>(api)];
  void* const own = function_of_hooked_copy(row.library, row.name);
  if (!own) return !leads_back(real, marking_function(row.library));
  if (own == real) return true;
  Dl_info one{}, other{};
  return ::dladdr(own, &one) && ::dladdr(real, &other) && one.dli_fbase == other.dli_fbase;
}

namespace {

constexpr size_t kNameSlots = 1024;
static_assert(kNameSlots >= 2 * kApiCount);

constexpr uint32_t hash_name(const char* name) {
  uint32_t hash = 2166136261u;
  for (; *name; ++name) hash = (hash ^ static_cast<uint8_t>(*name)) * 16777619u;
  return hash;
}

struct NameTable {
  uint16_t slot[kNameSlots];  // row + 1
};
constexpr NameTable make_name_table() {
  NameTable table{};
  for (size_t row = 0; row < kApiCount; ++row) {
    size_t at = hash_name(kApiRows[row].name) % kNameSlots;
    while (table.slot[at]) at = (at + 1) % kNameSlots;
    table.slot[at] = static_cast<uint16_t>(row + 1);
  }
  return table;
}
constexpr NameTable kNames = make_name_table();

}  // namespace

Api find_api(const char* name) {
  for (size_t at = hash_name(name) % kNameSlots; kNames.slot[at]; at = (at + 1) % kNameSlots) {
    const size_t row = kNames.slot[at] - 1u;
    if (same_text(kApiRows[row].name, name)) return static_cast<Api>(row);
  }
  return Api::count;
}

}  // namespace gpuprof
