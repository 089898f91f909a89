// SPDX-License-Identifier: Apache-2.0
#include "preload/resolve.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "collector/base/idle.h"
#include "collector/base/libc.h"
#include "preload/elf_symbols.h"

namespace gpuprof {
namespace {

// Where a library's functions are looked for when RTLD_NEXT does not have them.
constexpr const char* kCudartSonames[] = {"libcudart.so.13", "libcudart.so.12",
                                          "libcudart.so.11.0"};
constexpr const char* kDriverSonames[] = {"libcuda.so.1"};
constexpr const char* kNcclSonames[] = {"libnccl.so.2"};
constexpr const char* kCuptiSonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"};

HookSlot g_slots[kApiCount];

template <size_t N>
void* symbol_of_library(const char* const (&sonames)[N], const char* name) {
  for (const char* soname : sonames) {
    // RTLD_NOLOAD takes a reference, kept on purpose: what a hook calls must stay mapped.
    void* const handle = ::dlopen ? ::dlopen(soname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    void* const found = handle ? real_dlsym()(handle, name) : nullptr;
    if (found) return found;
  }
  return nullptr;
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
  if (void* const next = lookup(RTLD_NEXT, row.name)) return next;
  switch (row.library) {
    case Library::cudart: return symbol_of_library(kCudartSonames, row.name);
    case Library::driver: return symbol_of_library(kDriverSonames, row.name);
    case Library::nccl: return symbol_of_library(kNcclSonames, row.name);
    case Library::cupti: return symbol_of_library(kCuptiSonames, row.name);
    case Library::count: break;
  }
  return nullptr;
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
