// SPDX-License-Identifier: Apache-2.0
// A hash that is the same in every build, for names that outlive a process.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuprof {

// FNV-1a, of 64 bits.
constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace gpuprof
