// SPDX-License-Identifier: Apache-2.0
#include "collector/window/ancestor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "collector/base/fork_waits.h"
#include "collector/base/os.h"
#include "collector/record/ring.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr std::string_view kRingSuffix = ".gpuprof.ring";
constexpr int kGenerations = 3;

struct Search {
  Ancestor& out;
  uint32_t pid;
};

// Complete: the stem is written last of what others need.
bool is_ring_of(const RingHeader& header, uint32_t pid, uint64_t file_bytes) {
  const uint64_t stem_bytes = header.stem.used.load(std::memory_order_acquire);
  return header.magic == kRingMagic && header.version == kRingVersion &&
         header.header_bytes >=
             offsetof(RingHeader, parent_process) + sizeof header.parent_process &&
         header.process_id == pid && header.parent_process == 0 && stem_bytes > 0 &&
         stem_bytes < sizeof Ancestor::stem && header.stem.offset + stem_bytes <= file_bytes;
}

bool take_ring(int file, const Search& search) {
  struct stat info {};
  if (::syscall(SYS_fstat, file, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != effective_user() || info.st_size < static_cast<off_t>(kRingHeaderPage)) {
    return false;
  }
  void* const page = ::mmap(nullptr, kRingHeaderPage, PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return false;
  const auto* const header = static_cast<const RingHeader*>(page);
  if (is_ring_of(*header, search.pid, static_cast<uint64_t>(info.st_size))) {
    const uint64_t length = header->stem.used.load();
    if (::pread(file, search.out.stem, length, static_cast<off_t>(header->stem.offset)) ==
        static_cast<ssize_t>(length)) {
      search.out.stem[length] = '\0';
      search.out.header = header;
      return true;
    }
  }
  ::munmap(page, kRingHeaderPage);
  return false;
}

// Whether an open file of the process looked at is its ring, which then is taken.
bool take_open_file(const char* name, void* context) {
  const Search& search = *static_cast<Search*>(context);
  char link[64], path[2048];
  std::snprintf(link, sizeof link, "/proc/%u/fd/%.20s", search.pid, name);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  if (!ends_with({path, static_cast<size_t>(length)}, kRingSuffix)) return false;
  const ForkWaitsScope forks_wait;
  const int file = ::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;
  const bool taken = take_ring(file, search);
  ::close(file);
  return taken;
}

}  // namespace

void find_ancestor(Ancestor& out) {
  Search search{out, current_pid()};
  for (int i = 0; i < kGenerations && !out.header; ++i) {
    search.pid = static_cast<uint32_t>(stat_field(search.pid, 4));
    if (search.pid <= 1) return;
    char files[64];
    std::snprintf(files, sizeof files, "/proc/%u/fd", search.pid);
    any_entry(files, take_open_file, &search);
  }
}

void forget_ancestor(Ancestor& ancestor) {
  if (ancestor.header) ::munmap(const_cast<RingHeader*>(ancestor.header), kRingHeaderPage);
  ancestor = Ancestor{};
}

}  // namespace gpuprof
