// SPDX-License-Identifier: Apache-2.0
// Where the parts of a ring lie, and the file, or memory, that is mapped there. Used by ring.cpp
// alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/base/own_file.h"
#include "collector/record/ring.h"

namespace gpuprof {

// A slot for each: kernels' names are long, and stacks have some 15 frames of 8 bytes.
inline constexpr uint64_t kBytesPerName = 64, kBytesPerStack = 128;

// Sets the regions; returns the bytes of all of them.
uint64_t lay_out(RingHeader& header, const RingSizes& sizes);
// What of a table a process may use that records nothing yet, from the table's begin.
uint64_t names_before_windows(const RingHeader& header);
uint64_t stacks_before_windows(const RingHeader& header);
// The parts of the file that such a process writes to, in whole pages of any machine's (64 KiB on
// some of aarch64): a page that is half a hole would need a block with the first write to it.
struct FileRange {
  uint64_t begin, end;
};
struct RangesBeforeWindows {
  FileRange names;  // and all that lies before them
  FileRange stacks;
};
RangesBeforeWindows ranges_before_windows(const RingHeader& header);
void format_live_table(void* memory);

// `bytes` of address space at a multiple of the buffer size, which chunk_of() depends on;
// MAP_FAILED: there are none.
void* reserve_aligned(uint64_t bytes);
// Makes the file and maps it to `place`, with blocks for all, or, of one who waits, for what is
// used before windows. Signals must be blocked: RLIMIT_FSIZE raises SIGXFSZ. MAP_FAILED: `why`
// tells.
void* map_ring_file(const char* path, void* place, const RingHeader& places, bool waits,
                    OwnFile& file, char* why, size_t why_size);
void* map_ring_memory(void* place, uint64_t bytes);
// Blocks for bytes `from` to `to`, where there are none yet.
bool allocate_ring_file(const char* path, OwnFile& file, uint64_t from, uint64_t to, char* why,
                        size_t why_size);
void unlink_ring(const char* path);

}  // namespace gpuprof
