// SPDX-License-Identifier: Apache-2.0
// The envelope of everything in a dump: one protobuf field `chunk` of message Trace. See FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/byte_buffer.h"

namespace gpuprof {

inline constexpr uint64_t kChunkMagic = 0x314b484346525047;  // "GPRFCHK1" in file order
inline constexpr uint32_t kFormatVersion = 1;
// Readers refuse bodies that are larger, so that a damaged size cannot make them ask for the moon.
inline constexpr uint32_t kMaxBodyBytes = 64u << 20;

enum class ChunkKind : uint32_t {
  header = 1,
  events = 2,
  steps = 3,
  summary = 4,
  graphs = 5,
  counters = 6,
  modules = 7,
  workers = 8,
  live_memory = 9,
  nvtx_names = 10,
  budget = 11,
  cuda = 12  // the last
};
enum class Codec : uint32_t { none = 0, deflate = 1 };

// Appends one chunk to `out`: compresses `body` (kept as it is where that does not make it smaller)
// and adds magic, size and CRC32C. `level` is libdeflate's, 1 to 12; 0: no compression.
// Returns false when memory for the buffers cannot be had or `size` is over kMaxBodyBytes; `out` is
// then unchanged. Any thread.
bool append_chunk(ByteBuffer& out, ChunkKind kind, const uint8_t* body, size_t size, int level);

// Makes libdeflate take its memory from mmap. Must run before any libdeflate_alloc_*() of ours,
// since what one allocator gave the other must not free. append_chunk() does it itself. Any thread.
void prepare_libdeflate();

}  // namespace gpuprof
