// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli polynomial, reflected, as in RFC 3720): the check sum of dump chunks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

// CRC of `size` bytes that follow bytes whose CRC was `crc` (0 at the start). Any thread.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

}  // namespace gpuprof
