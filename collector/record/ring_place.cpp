// SPDX-License-Identifier: Apache-2.0
#include "collector/record/ring_place.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "collector/base/file_systems.h"
#include "formats/core/live_table.h"

namespace gpuprof {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kPage = 4 * kKiB;

uint64_t place_region(RingRegion& region, uint64_t offset, uint64_t bytes) {
  region.offset = offset;
  region.bytes = bytes;
  return offset + bytes;
}

// Allocations at a time, of CUDA's and of a framework's together: 18 MiB of the ring.
constexpr uint64_t kLiveSlots = 128 * 1024;

void* map_at(void* place, uint64_t bytes, int flags, int descriptor) {
  return ::mmap(place, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, descriptor, 0);
}

OwnDirectory& ring_directory() {
  return scratch_directory().is_open() ? scratch_directory() : run_directory();
}

}  // namespace

// Sizes: 4,095 launch shapes, some 100,000 names, as many stacks of depth 15, and 4,600 modules are
// far more than programs have. What only windows use lies behind all else.
uint64_t lay_out(RingHeader& header, const RingSizes& sizes) {
  constexpr uint64_t kStackMiB[] = {0, 4, 16};
  const auto unless_light = [&](uint64_t usual, uint64_t light) {
    return sizes.light ? light : usual;
  };
  uint64_t end = kRingHeaderPage;
  end = place_region(header.identity, end, 256 * kKiB);
  end = place_region(header.steps, end, unless_light(2 * kMiB, kPage));
  end = place_region(header.functions, end, unless_light(512 * kKiB, kPage));
  end = place_region(header.api_names, end, kPage);
  const uint64_t modules = sizes.stacks == RingStacks::native ? 256 * kKiB : 0;
  end = place_region(header.modules, end, modules);
  // What is cloned between two looks of the drain thread.
  end = place_region(header.graph_nodes, end, unless_light(kMiB, kPage));
  end = place_region(header.stem, end, kPage);
  const uint64_t live = sizes.memory_log ? kLiveSlots : 0;
  end = place_region(header.live, end, live ? LiveTable::bytes_for(live) : 0);
  // A copy of `allocators` lies at the end of each.
  const uint64_t copy = live ? live * sizeof(LiveRow) + sizeof header.allocators : 0;
  end = place_region(header.live_at_begin, end, copy);
  end = place_region(header.live_at_failure, end, copy);
  end = place_region(header.strings, end, unless_light(8 * kMiB, kMiB));
  for (RingRegion& texts : header.texts) end = place_region(texts, end, unless_light(8 * kMiB, 0));
  end = place_region(header.shapes, end, unless_light(kMiB, 4 * kPage));
  end = place_region(header.stacks, end, kStackMiB[static_cast<size_t>(sizes.stacks)] * kMiB);
  end = (end + kChunkBytes - 1) & ~uint64_t{kChunkBytes - 1};  // see chunk_of()
  const uint64_t chunks = sizes.buffer_mb * kMiB / kChunkBytes;
  end = place_region(header.chunks, end, chunks * kChunkBytes);
  header.tail_offset = end;
  return end;
}

// Up to a page's end.
static uint64_t first_part(const RingRegion& table, uint64_t bytes_per_text, uint64_t texts) {
  const uint64_t slots = StringTable::slot_bytes(table.bytes, bytes_per_text);
  return std::min(table.bytes, (slots + texts + kPage - 1) & ~(kPage - 1));
}

uint64_t names_before_windows(const RingHeader& header) {
  return first_part(header.strings, kBytesPerName, kMiB);
}

uint64_t stacks_before_windows(const RingHeader& header) {
  return first_part(header.stacks, kBytesPerStack, 512 * kKiB);
}

RangesBeforeWindows ranges_before_windows(const RingHeader& header) {
  constexpr uint64_t kLargestPage = 64 * kKiB;
  static_assert(kChunkBytes % kLargestPage == 0);  // so the file's end is a page's, too
  const auto whole_pages = [](uint64_t begin, uint64_t bytes) {
    const uint64_t end = bytes ? begin + bytes + kLargestPage - 1 : begin;
    return FileRange{begin & ~(kLargestPage - 1), end & ~(kLargestPage - 1)};
  };
  return {whole_pages(0, header.strings.offset + names_before_windows(header)),
          whole_pages(header.stacks.offset, stacks_before_windows(header))};
}

void format_live_table(void* memory) { LiveTable::format(memory, kLiveSlots); }

void* reserve_aligned(uint64_t bytes) {
  void* const wide = ::mmap(nullptr, bytes + kChunkBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (wide == MAP_FAILED) return MAP_FAILED;
  const uintptr_t start = reinterpret_cast<uintptr_t>(wide);
  const uintptr_t aligned = (start + kChunkBytes - 1) & ~uintptr_t{kChunkBytes - 1};
  if (aligned > start) ::munmap(wide, aligned - start);
  const uintptr_t end = start + bytes + kChunkBytes;
  if (end > aligned + bytes)
    ::munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  return reinterpret_cast<void*>(aligned);
}

// A write to a part of the file without blocks would kill the host with SIGBUS on a full disk.
bool allocate_ring_file(const char* path, OwnFile& file, uint64_t from, uint64_t to, char* why,
                        size_t why_size) {
  const int error = file.allocate(from, to);
  if (error == 0) return true;
  std::snprintf(why, why_size, "cannot allocate %llu MB in %s: %s",
                static_cast<unsigned long long>((to - from) / kMiB), path, std::strerror(error));
  return false;
}

static bool allocate_before_windows(const char* path, const RingHeader& places, OwnFile& file,
                                    char* why, size_t why_size) {
  const auto [names, stacks] = ranges_before_windows(places);
  return allocate_ring_file(path, file, names.begin, names.end, why, why_size) &&
         (stacks.begin == stacks.end ||
          allocate_ring_file(path, file, stacks.begin, stacks.end, why, why_size));
}

void* map_ring_file(const char* path, void* place, const RingHeader& places, bool waits,
                    OwnFile& file, char* why, size_t why_size) {
  const uint64_t bytes = places.tail_offset;
  if (!file.create(ring_directory(), name_in_directory(path))) {
    std::snprintf(why, why_size, "cannot create %s: %s", path, std::strerror(errno));
    return MAP_FAILED;
  }
  void* memory = MAP_FAILED;
  if (const char* const kind = writes_pages_anew(file.descriptor())) {
    std::snprintf(why, why_size,
                  "%s is on %s, where a full disk would end the program (GPUPROF_SCRATCH takes a "
                  "folder on ext4, XFS or tmpfs)",
                  path, kind);
  } else if (waits && ::ftruncate(file.descriptor(), static_cast<off_t>(bytes)) != 0) {
    std::snprintf(why, why_size, "cannot make %s as long as %llu MB: %s", path,
                  static_cast<unsigned long long>(bytes / kMiB), std::strerror(errno));
  } else if (waits ? allocate_before_windows(path, places, file, why, why_size)
                   : allocate_ring_file(path, file, 0, bytes, why, why_size)) {
    memory = map_at(place, bytes, MAP_SHARED, file.descriptor());
    if (memory == MAP_FAILED) {
      std::snprintf(why, why_size, "cannot map %s: %s", path, std::strerror(errno));
    }
  }
  if (memory == MAP_FAILED) {
    unlink_ring(path);
    file.close();
  }
  return memory;
}

void* map_ring_memory(void* place, uint64_t bytes) {
  return map_at(place, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

void unlink_ring(const char* path) {
  ::unlinkat(ring_directory().descriptor(), name_in_directory(path), 0);
}

}  // namespace gpuprof
