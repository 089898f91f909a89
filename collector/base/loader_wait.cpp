// SPDX-License-Identifier: Apache-2.0
// glibc keeps the lock among the variables of its loader. proc(5) tells what a thread waits for:
// the number of its system call, and the arguments, of which a futex's first is the lock's address.
#include "collector/base/loader_wait.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>

#include "collector/base/libraries.h"
#include "collector/base/os.h"

namespace gpuprof {
namespace {

struct Search {
  uint64_t loader, address;
};

// Whether the address is one of the loader's variables.
int is_of_loader(dl_phdr_info* object, size_t, void* context) {
  const auto& search = *static_cast<const Search*>(context);
  if (object->dlpi_addr != search.loader) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uint64_t begin = object->dlpi_addr + segment.p_vaddr;
    const bool variables = segment.p_type == PT_LOAD && (segment.p_flags & PF_W);
    if (variables && search.address - begin < segment.p_memsz) return 1;
  }
  return 0;
}

}  // namespace

bool waits_for_loader(uint32_t thread) {
  char path[64], text[256];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
  if (!read_small_file(path, text, sizeof text)) return false;
  char* rest = nullptr;
  if (std::strtol(text, &rest, 10) != SYS_futex || rest == text) return false;
  Search search{::getauxval(AT_BASE), std::strtoull(rest, nullptr, 16)};
  // A program that was started through its loader has it elsewhere: not known.
  return search.loader && list_objects(is_of_loader, &search) != 0;
}

}  // namespace gpuprof
