// SPDX-License-Identifier: Apache-2.0
#include "formats/core/crc32c.h"

#include <array>
#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace gpuprof {
namespace {

// Eight tables: table k gives the effect of a byte that k more bytes follow.
constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

uint32_t with_tables(const uint8_t* data, size_t size, uint32_t crc) {
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][word >> (8 * i) & 0xff];
  }
  for (; size; ++data, --size) crc = crc >> 8 ^ kTables[0][(crc ^ *data) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t with_instruction(const uint8_t* data, size_t size,
                                                            uint32_t crc) {
  uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; size; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return crc;
}

bool cpu_has_instruction() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) uint32_t with_instruction(const uint8_t* data, size_t size,
                                                          uint32_t crc) {
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    crc = __builtin_aarch64_crc32cx(crc, word);
  }
  for (; size; ++data, --size) crc = __builtin_aarch64_crc32cb(crc, *data);
  return crc;
}

bool cpu_has_instruction() {
  constexpr unsigned long kHwcapCrc32 = 1 << 7;
  return ::getauxval(AT_HWCAP) & kHwcapCrc32;
}
#endif

bool have_instruction() {
  static std::atomic<int> known{-1};
  int have = known.load(std::memory_order_relaxed);
  if (have < 0) {
    have = cpu_has_instruction();
    known.store(have, std::memory_order_relaxed);
  }
  return have;
}

}  // namespace

uint32_t crc32c(const void* data, size_t size, uint32_t crc) {
  const auto* const bytes = static_cast<const uint8_t*>(data);
  if (have_instruction()) return ~with_instruction(bytes, size, ~crc);
  return ~with_tables(bytes, size, ~crc);
}

}  // namespace gpuprof
