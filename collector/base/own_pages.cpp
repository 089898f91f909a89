// SPDX-License-Identifier: Apache-2.0
#include "collector/base/own_pages.h"

#include <link.h>

#include <cstddef>
#include <cstdint>

// By the linker: our file's first byte in memory.
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace gpuprof {

// Not checked: it reads across all variables of the file, and what sanitizers put between them.
[[gnu::no_sanitize("address,undefined")]] void touch_own_pages() {
  constexpr size_t kPage = 4096;
  const auto* const base = reinterpret_cast<const uint8_t*>(&__ehdr_start);
  const auto* const rows = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
  for (size_t i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (rows[i].p_type != PT_LOAD || (rows[i].p_flags & PF_W)) continue;
    const volatile uint8_t* const begin = base + rows[i].p_vaddr;
    for (size_t at = 0; at < rows[i].p_filesz; at += kPage) (void)begin[at];
  }
}

}  // namespace gpuprof
