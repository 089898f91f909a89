// SPDX-License-Identifier: Apache-2.0
#include "formats/core/chunk.h"

#include <libdeflate.h>
#include <sys/mman.h>

#include <atomic>

#include "formats/core/crc32c.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

// libdeflate's working memory comes from mmap as well: each block is preceded by its own size.
constexpr size_t kBlockHead = 64;

void* map_block(size_t size) {
  const size_t bytes = size + kBlockHead;
  void* const block =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  std::memcpy(block, &bytes, sizeof bytes);
  return static_cast<uint8_t*>(block) + kBlockHead;
}

void unmap_block(void* memory) {
  if (!memory) return;
  uint8_t* const block = static_cast<uint8_t*>(memory) - kBlockHead;
  size_t bytes;
  std::memcpy(&bytes, block, sizeof bytes);
  ::munmap(block, bytes);
}

// One compressor is kept between calls; a second caller at the same time makes its own.
std::atomic<libdeflate_compressor*> kept_compressor{nullptr};
std::atomic<int> kept_level{0};

libdeflate_compressor* take_compressor(int level) {
  libdeflate_compressor* const kept = kept_compressor.exchange(nullptr, std::memory_order_acquire);
  if (kept && kept_level.load(std::memory_order_relaxed) == level) return kept;
  if (kept) libdeflate_free_compressor(kept);
  prepare_libdeflate();
  return libdeflate_alloc_compressor(level);
}

void give_compressor(libdeflate_compressor* compressor, int level) {
  kept_level.store(level, std::memory_order_relaxed);
  libdeflate_compressor* const other =
      kept_compressor.exchange(compressor, std::memory_order_acq_rel);
  if (other) libdeflate_free_compressor(other);
}

// Compresses to the end of `out`; 0 where that fails or gains nothing.
size_t deflate_to(ByteBuffer& out, const uint8_t* body, size_t size, int level) {
  if (level <= 0 || size < 64) return 0;
  if (level > 12) level = 12;
  libdeflate_compressor* const compressor = take_compressor(level);
  if (!compressor) return 0;
  const size_t packed =
      libdeflate_deflate_compress(compressor, body, size, out.data() + out.size(), size - 1);
  give_compressor(compressor, level);
  return packed;
}

}  // namespace

void prepare_libdeflate() { libdeflate_set_memory_allocator(map_block, unmap_block); }

bool append_chunk(ByteBuffer& out, ChunkKind kind, const uint8_t* body, size_t size, int level) {
  constexpr size_t kMaxHead = 64;
  const size_t start = out.size();
  if (size > kMaxBodyBytes || !out.reserve(start + size + 2 * kMaxHead)) return false;
  ByteBuffer packed;
  if (!packed.reserve(size + kMaxHead)) return false;
  const size_t packed_size = deflate_to(packed, body, size, level);
  const uint8_t* const data = packed_size ? packed.data() : body;
  const size_t data_size = packed_size ? packed_size : size;
  const Codec codec = packed_size ? Codec::deflate : Codec::none;

  constexpr size_t kFixed = 9 + 5 + 5;  // magic, size, crc
  const size_t sized = size ? 1 + varint_size(size) + 1 + varint_size(data_size) + data_size : 0;
  const size_t after_crc = 2 + (codec == Codec::none ? 0 : 2) + sized;
  WireWriter wire(out);
  wire.length(1, kFixed + after_crc);
  wire.fixed64(1, kChunkMagic);
  wire.fixed32(2, static_cast<uint32_t>(after_crc));
  wire.fixed32(3, 0);
  const size_t checked = out.size();
  wire.uint(4, static_cast<uint32_t>(kind));
  wire.uint(5, static_cast<uint32_t>(codec));
  wire.uint(6, size);
  if (size) wire.bytes(7, data, data_size);
  if (!wire.ok() || out.size() - checked != after_crc) {
    out.truncate(start);
    return false;
  }
  const uint32_t crc = crc32c(out.data() + checked, after_crc);
  std::memcpy(out.data() + checked - sizeof crc, &crc, sizeof crc);
  return true;
}

}  // namespace gpuprof
