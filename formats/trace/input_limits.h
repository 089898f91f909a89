// SPDX-License-Identifier: Apache-2.0
// How much is believed of a file of so many bytes: a small hostile file stays small.
#pragma once

#include <cstdint>

namespace gpuprof {

constexpr uint64_t event_limit(uint64_t input_bytes) {
  constexpr uint64_t kPerByte = 32;  // no real stream compresses to less
  constexpr uint64_t kAlways = 1 << 20;
  return kAlways + input_bytes * kPerByte;
}

// Bytes that what is compressed in a file may stand for, all of it together. Deflate reaches 1032
// to one (RFC 1951: 258 bytes in two bits); traces reach 10 to 60.
constexpr uint64_t kMostCompression = 256;
constexpr uint64_t unpacked_limit(uint64_t input_bytes) {
  constexpr uint64_t kAlways = 64 << 20;
  return kAlways + input_bytes * kMostCompression;
}

}  // namespace gpuprof
