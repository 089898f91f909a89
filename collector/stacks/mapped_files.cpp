// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/mapped_files.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/os.h"
#include "collector/base/redact.h"
#include "collector/record/ring.h"
#include "collector/stacks/unwind.h"
#include "formats/core/modules.h"

namespace gpuprof {
namespace {

constexpr size_t kMaxBuildId = 64;

// One object as the loader lists it.
struct Listed {
  uint64_t begin, end, bias;
  uint32_t build_id_bytes;
  char build_id[kMaxBuildId];
  char name[1024];
};

struct Listing {
  PodVector<Listed> objects;
  uint64_t loads, unloads;  // in the life of the process, as the loader counts them
  bool unchanged;
};

uint64_t g_loads = 0, g_unloads = 0;

void read_build_id(const char* note, size_t bytes, Listed& out) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const size_t name = (header.n_namesz + 3u) & ~size_t{3};
    const size_t description = (header.n_descsz + 3u) & ~size_t{3};
    if (name > bytes || description > bytes || sizeof header + name + description > bytes) return;
    const char* const text = note + sizeof header;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(text, "GNU", 4) == 0 && header.n_descsz <= kMaxBuildId) {
      std::memcpy(out.build_id, text + name, header.n_descsz);
      out.build_id_bytes = header.n_descsz;
      return;
    }
    note += sizeof header + name + description;
    bytes -= sizeof header + name + description;
  }
}

// Under the loader's lock: copies and nothing else.
int list_object(dl_phdr_info* info, size_t, void* context) {
  Listing& listing = *static_cast<Listing*>(context);
  listing.loads = info->dlpi_adds;
  listing.unloads = info->dlpi_subs;
  if (listing.loads == g_loads && listing.unloads == g_unloads) {
    listing.unchanged = true;
    return 1;
  }
  Listed object;
  std::memset(&object, 0, sizeof object);
  object.bias = info->dlpi_addr;
  object.begin = ~uint64_t{0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uint64_t place = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X)) {
      if (place < object.begin) object.begin = place;
      if (place + segment.p_memsz > object.end) object.end = place + segment.p_memsz;
    } else if (segment.p_type == PT_NOTE && !object.build_id_bytes) {
      read_build_id(reinterpret_cast<const char*>(place), segment.p_memsz, object);
    }
  }
  if (object.end == 0) return 0;
  std::snprintf(object.name, sizeof object.name, "%s", info->dlpi_name ? info->dlpi_name : "");
  (void)listing.objects.push_back(object);
  return 0;
}

// The path by which tools will find the file. The program itself has no name in the list, and a
// name may be relative to where the process was then.
void make_path(const Listed& object, char* out, size_t size) {
  if (object.name[0] == '/') {
    std::snprintf(out, size, "%s", object.name);
  } else if (object.name[0] == '\0') {
    const ssize_t length = ::readlink(OwnProcPath("exe").c_str(), out, size - 1);
    out[length > 0 ? length : 0] = '\0';
  } else if (!std::strchr(object.name, '/')) {
    std::snprintf(out, size, "[%s]", object.name);  // linux-vdso.so.1: no file
  } else {
    char folder[1024];
    if (!::getcwd(folder, sizeof folder)) folder[0] = '\0';
    std::snprintf(out, size, "%s/%s", folder, object.name);
  }
}

void add_module(const Listed& object) {
  Ring& buffers = *ring();
  RingRegion& region = buffers.header->modules;
  char path[2100];
  make_path(object, path, sizeof path);
  ModuleRow row{};
  row.begin = object.begin;
  row.end = object.end;
  row.bias = object.bias;
  row.path = buffers.strings.intern(shown_path(path));
  row.build_id = buffers.strings.intern({object.build_id, object.build_id_bytes});
  auto* const rows = buffers.region<ModuleRow>(region);
  const size_t known = region.used.load(std::memory_order_relaxed) / sizeof(ModuleRow);
  for (size_t i = 0; i < known; ++i) {
    const ModuleRow& other = rows[i];
    if (other.begin == row.begin && other.end == row.end && other.path == row.path &&
        other.build_id == row.build_id) {
      return;
    }
  }
  if ((known + 1) * sizeof(ModuleRow) > region.bytes || row.path == 0) {
    return count_loss(Loss::string_table_full);
  }
  struct stat file {};
  if (path[0] == '/' && ::syscall(SYS_newfstatat, AT_FDCWD, path, &file, 0) == 0) {
    row.file_bytes = static_cast<uint64_t>(file.st_size);
    row.modified_ns = static_cast<uint64_t>(file.st_mtim.tv_sec) * 1000000000u +
                      static_cast<uint64_t>(file.st_mtim.tv_nsec);
  }
  row.ready = 1;
  rows[known] = row;
  region.used.store((known + 1) * sizeof(ModuleRow), std::memory_order_release);
}

}  // namespace

size_t note_modules() {
  RingRegion& region = ring()->header->modules;
  if (region.bytes == 0) return 0;
  Listing listing{};
  list_objects(list_object, &listing);
  if (!listing.unchanged) {
    for (const Listed& object : listing.objects) add_module(object);
    if (listing.unloads != g_unloads) forget_frame_rules();
    g_loads = listing.loads;
    g_unloads = listing.unloads;
  }
  return region.used.load(std::memory_order_relaxed) / sizeof(ModuleRow);
}

namespace {
void forget_modules() { g_loads = g_unloads = 0; }
GPUPROF_FORGET_IN_CHILD(forget_modules);
}  // namespace

bool encode_known_modules(ByteBuffer& out) {
  Ring& buffers = *ring();
  const RingRegion& region = buffers.header->modules;
  return encode_modules(out, buffers.region<ModuleRow>(region),
                        region.used.load(std::memory_order_acquire) / sizeof(ModuleRow),
                        buffers.strings);
}

}  // namespace gpuprof
