// SPDX-License-Identifier: Apache-2.0
// Where the information lies: the Linux Standard Base, chapter "Exception Frames"; what its
// instructions mean: DWARF 5, section 6.4.
#include "collector/stacks/frame_rules.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "collector/base/host.h"
#include "collector/base/libraries.h"
#include "collector/stacks/eh_reader.h"

namespace gpuprof {
namespace {

// glibc's struct dl_find_object (2.35) on x86-64 and aarch64.
struct FoundObject {
  uint64_t flags;
  void *map_begin, *map_end;
  link_map* link;
  const uint8_t* eh_frame_header;
  uint64_t reserved[7];
};
using FindObject = int (*)(void* address, FoundObject* out);
FindObject g_find_object = nullptr;

struct Search {
  uint64_t address;
  bool found;
  const uint8_t* header;
};

int visit_object(dl_phdr_info* info, size_t, void* context) {
  Search& search = *static_cast<Search*>(context);
  const uint8_t* header = nullptr;
  bool here = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) here |= search.address - begin < segment.p_memsz;
    if (segment.p_type == PT_GNU_EH_FRAME) header = reinterpret_cast<const uint8_t*>(begin);
  }
  if (!here) return 0;
  search.found = true;
  search.header = header;
  return 1;
}

bool find_header(uint64_t address, const uint8_t*& out) {
  if (g_find_object) {
    FoundObject object;
    if (g_find_object(reinterpret_cast<void*>(address), &object) == 0) {
      out = object.eh_frame_header;
      return true;
    }
    return false;
  }
  Search search{address, false, nullptr};
  list_objects(visit_object, &search);
  out = search.header;
  return search.found;
}

// The description (FDE) of the function around `address`, by the sorted table that linkers make.
const uint8_t* find_description(const uint8_t* header, uint64_t address) {
  constexpr uint8_t kVersion = 1, kTable = eh::kRelativeToData | eh::kSigned4;
  if (!header || header[0] != kVersion || header[3] != kTable) return nullptr;
  eh::Reader in{header + 4, nullptr, header};
  (void)in.pointer(header[1]);  // where .eh_frame begins
  const uint64_t count = in.pointer(header[2]);
  struct Row {
    int32_t function, description;  // relative to the header
  };
  const auto* const rows = reinterpret_cast<const Row*>(in.at);
  const auto wanted = static_cast<int64_t>(address - reinterpret_cast<uint64_t>(header));
  uint64_t low = 0, high = in.ok ? count : 0;
  while (low < high) {  // low: the number of functions that begin at or before it
    const uint64_t middle = low + (high - low) / 2;
    if (rows[middle].function <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low ? header + rows[low - 1].description : nullptr;
}

}  // namespace

void prepare_frame_rules() {
  // Not by dlsym where preload gives a walk: a constructor of the program's, which the loader's
  // lock is held around, may wait for this.
  void* const found = g_host.walk ? exported_symbol("libc.so.6", "_dl_find_object")
                                  : ::dlsym(RTLD_DEFAULT, "_dl_find_object");
  g_find_object = reinterpret_cast<FindObject>(found);
}

bool frame_rules_need_no_lock() { return g_find_object != nullptr; }

bool find_frame_rule(uint64_t address, FrameRule& out) {
  out = FrameRule();
  const uint8_t* header = nullptr;
  if (!find_header(address, header)) return false;
  const uint8_t* const description = find_description(header, address);
  if (description && !eh::read_rule(description, address, out)) out = FrameRule();
  return true;
}

}  // namespace gpuprof
