// SPDX-License-Identifier: Apache-2.0
// dlopen with RTLD_DEEPBIND, any where this library was not preloaded, and any once allocations are
// sampled: what was loaded is patched (got_patch.h). The assembler part is dlsym_<architecture>.S.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "collector/python/bridge.h"
#include "preload/export.h"
#include "preload/heap_hooks.h"
#include "preload/injection.h"
#include "preload/objects/copies.h"
#include "preload/objects/elf_symbols.h"
#include "preload/objects/got_patch.h"
#include "preload/resolve.h"

extern "C" {
// Read by the assembler part; filled before it jumps.
[[gnu::visibility("hidden")]] void* gpuprof_real_dlopen = nullptr;
[[gnu::visibility("hidden")]] const void* gpuprof_before_dlopen(const char* file, int flags,
                                                                const void* caller);
[[gnu::visibility("hidden")]] void gpuprof_after_dlopen(void* handle);
}

namespace gpuprof {
namespace {

// Answers when libc's cannot be found.
void* nothing(const char*, int) { return nullptr; }

// dlopen takes its caller from the return address: that decides where libraries are searched
// (RUNPATH). To get control back it has to return into the caller's own code at instructions that
// do nothing but return to an address on the stack. Every object has them; on aarch64 in the ends
// of functions that keep nothing but x29 and x30, such as _init.
#if defined(__x86_64__)
constexpr size_t kInstruction = 1;
bool is_return(const unsigned char* at, size_t) { return *at == 0xc3; }
#elif defined(__aarch64__)
constexpr size_t kInstruction = 4;
bool is_return(const unsigned char* at, size_t left) {
  constexpr uint32_t kPop = 0xa8c17bfd;                          // ldp x29, x30, [sp], #16
  constexpr uint32_t kCheck = 0xd50323bf, kReturn = 0xd65f03c0;  // autiasp; ret
  const auto word = [&](size_t i) {
    uint32_t value = 0;
    if ((i + 1) * sizeof value <= left) std::memcpy(&value, at + i * sizeof value, sizeof value);
    return value;
  };
  return word(0) == kPop && (word(1) == kReturn || (word(1) == kCheck && word(2) == kReturn));
}
#endif
struct ReturnSearch {
  uintptr_t caller;
  const void* found;
};

int find_return(dl_phdr_info* info, size_t, void* raw) {
  ReturnSearch& search = *static_cast<ReturnSearch*>(raw);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    const uintptr_t end = begin + header.p_memsz;
    const bool code =
        header.p_type == PT_LOAD && (header.p_flags & PF_X) && (header.p_flags & PF_R);
    if (!code || search.caller < begin || search.caller >= end) continue;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(begin);
    const size_t size = (end - begin) / kInstruction;
    const size_t from = (search.caller - begin) / kInstruction;
    for (size_t k = 0; k < size && !search.found; ++k) {
      const size_t at = (from + k) % size * kInstruction;
      if (is_return(bytes + at, end - begin - at)) search.found = bytes + at;
    }
    return 1;
  }
  return 0;
}

// A processor that checks returns against a shadow stack would end the program here.
bool has_shadow_stack() {
#if defined(__x86_64__)
  uint64_t pointer = 0;
  __asm__ volatile("rdsspq %0" : "+r"(pointer));  // does nothing where there is none
  return pointer != 0;
#elif defined(__aarch64__)
  register uint64_t feature __asm__("x16") = 1;  // a guarded control stack
  __asm__ volatile("hint 40" : "+r"(feature));   // chkfeat: likewise; clears what there is
  return feature == 0;
#endif
}

// Objects before the outermost dlopen of this thread: constructors may open further libraries.
constinit thread_local LoadedObjects t_objects_before{};
constinit thread_local uint32_t t_depth = 0;

}  // namespace
}  // namespace gpuprof

// Where the real dlopen is to return to, in the caller's object; null: it is called as ever.
extern "C" const void* gpuprof_before_dlopen(const char* file, int flags, const void* caller) {
  using namespace gpuprof;
  if (!gpuprof_real_dlopen) {
    void* const real = symbol_after_own("dlopen");
    gpuprof_real_dlopen = real ? real : reinterpret_cast<void*>(&nothing);
  }
  if (!has_libc()) return nullptr;
  if (file) python_opens(file);
  if (!(flags & RTLD_NOLOAD)) lead_copies_apart_before_opening();
  if (!(flags & RTLD_DEEPBIND) && !is_injected() && !heap_calls_are_patched()) return nullptr;
  if (flags & RTLD_NOLOAD || has_shadow_stack()) return nullptr;
  const ErrnoGuard keep_errno;
  ReturnSearch search{reinterpret_cast<uintptr_t>(caller), nullptr};
  ::dl_iterate_phdr(find_return, &search);
  if (search.found && t_depth++ == 0) t_objects_before = loaded_objects();
  return search.found;
}

extern "C" void gpuprof_after_dlopen(void* handle) {
  const gpuprof::LoadedObjects before = gpuprof::t_objects_before;
  // Within a constructor the outer call's libraries are not all constructed: its end sees to these.
  if (--gpuprof::t_depth != 0 || !handle) return;
  gpuprof::prepare_library();
  gpuprof::patch_loaded_since(before, handle, gpuprof::PatchedCalls::all);
}
