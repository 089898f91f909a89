// SPDX-License-Identifier: Apache-2.0
// The ring file of this process: creation, the pool of buffers, the intern tables. Layout: see
// formats/core/ring_file.h. One ring per process, never unmapped while the process lives (a late
// record of a slow thread must still land somewhere).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/base/clock.h"
#include "collector/base/own_file.h"
#include "collector/record/recorder.h"
#include "formats/core/ring_file.h"
#include "formats/core/string_table.h"

namespace gpuprof {

struct Ring {
  RingHeader* header = nullptr;
  uint64_t bytes = 0;
  OwnFile file;            // closed: memory only, lost with the process
  char path[1600] = {};    // of the file; "" when memory only
  char link[1600] = {};    // symbolic link in the output directory to a ring on scratch; "" if none
  uint64_t populated = 0;  // bytes of the buffers that have been touched
  StringTable strings;
  StringTable texts[2];  // of records of one window; see RingHeader
  ShapeTable shapes;
  StringTable stacks;  // of return addresses; without room where none are wanted

  RingChunk* chunk(uint32_t index) const {
    return reinterpret_cast<RingChunk*>(reinterpret_cast<uint8_t*>(header) +
                                        header->chunks.offset) +
           index;
  }
  // Of an id in any of the tables.
  std::string_view text(StringId id) const {
    if (!(id & kTextId)) return strings.get(id);
    return texts[id & kTextTurn ? 1 : 0].get(id & ~(kTextId | kTextTurn));
  }
  template <typename T>
  T* region(const RingRegion& region) const {
    return reinterpret_cast<T*>(reinterpret_cast<uint8_t*>(header) + region.offset);
  }
};

// Room for call stacks: none, for those of host samples, or for those of calls, with modules.
enum class RingStacks : uint8_t { none, samples, native };

// Null until the ring is ready. Set once, by the drain thread.
Ring* ring();

struct RingSizes {
  uint32_t buffer_mb;
  RingStacks stacks;
  bool memory_log;
  bool light;  // of a DataLoader's worker: room for host samples alone
  bool waits;  // for a trigger: no room for records until make_ring_whole()
};

// Creates `path` in full (raw fallocate; signals must be blocked: RLIMIT_FSIZE raises SIGXFSZ). If
// the file system refuses, plain memory with the same layout; `why` then tells the reason. Returns
// false only when there is no memory either.
bool create_ring(const char* path, const RingSizes& sizes, const ClockChoice& clock,
                 uint64_t start_ticks, char* why, size_t why_size);
// Whether it has room for a window. Until then there are no buffers, shapes or texts, and little
// room for names and stacks. Any thread.
bool ring_is_whole();
// Takes the rest of its room on the disk, some 90 MB. Drain thread, before a window can begin.
// False: the file system refuses, `why` tells; it may be asked again.
bool make_ring_whole(char* why, size_t why_size);
// The texts of the window that is over stay; those of the one before are forgotten, and the next
// window's take their place. Drain thread, when all records of the window are taken. A thread that
// had begun to intern a text before that window, and stood still until now, may spoil a text.
void turn_texts();
// Stores names of the intercepted functions; before the first record.
void ring_store_apis(const ApiRow* rows, size_t count);
// Touches the next few MB of buffers, in the order in which they will be used. Hooks then do
// not wait for page faults, which are a third of their cost. Drain thread; false: all are
// touched.
bool populate_more();
bool few_populated_chunks_are_left();  // that no thread has had yet
// Makes the ring visible to all threads.
void publish_ring();
// A link of this name beside the dumps, to a ring that lies elsewhere; "" does nothing.
void link_ring(const char* name);
// Removes the file's name (and the link); the mapping stays, and the file for make_ring_whole().
void remove_ring_name();
// The same, and nothing is added to the file any more.
void remove_ring_file();
// In the child after fork, before the parent's ring is forgotten: the header's page stays mapped,
// read-only. Null: there is none that the parent would still write to.
const RingHeader* keep_ring_header();
// For workers of a DataLoader: where this process's dumps go.
void ring_store_stem(const char* stem);

// Keeps a kernel's name in the ring, for whoever reads it after SIGKILL. Any thread.
void store_function_in_ring(const void* function, std::string_view name);

// Keeps a graph's node in the ring until the drain thread has written it; one caller at a time.
void store_graph_node_in_ring(const GraphNodeRow& row);

// Pool of buffers. acquire returns null when none is free.
RingChunk* acquire_chunk();
void release_chunk(RingChunk* chunk);
uint32_t free_chunks();  // approximate
uint32_t full_chunks();  // approximate
// The calling thread's buffer is complete; the drain thread takes it.
void retire_chunk(RingChunk* chunk);

}  // namespace gpuprof
