// SPDX-License-Identifier: Apache-2.0
// How many events are believed of a dump of so many bytes: a small hostile file stays small.
#pragma once

#include <cstdint>

namespace gpuprof {

constexpr uint64_t event_limit(uint64_t input_bytes) {
  constexpr uint64_t kPerByte = 32;  // no real stream compresses to less
  constexpr uint64_t kAlways = 1 << 20;
  return kAlways + input_bytes * kPerByte;
}

}  // namespace gpuprof
