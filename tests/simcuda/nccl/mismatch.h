// SPDX-License-Identifier: Apache-2.0
// Ranks that do not call the same. NCCL's guide: each rank has to call a collective with the same
// count and the same data type, else the result is "undefined behavior, including hangs, crashes,
// or data corruption" (User Guide, "Collective Operations"). NCCL does not compare the calls.
//
// Here another function, size in bytes, root, or number of calls in a group hangs, since one side
// waits for data that no other sends. SIMCUDA_NCCL_MISMATCH=corrupt: it ends with wrong data.
// Of a reduction another data type of the same size, or another operation, always ends with wrong
// data.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {

// What all ranks of an operation must have in common.
struct CallWords {
  uint32_t waits = 0;   // what decides how much each waits for
  uint32_t values = 0;  // what decides the values alone
  uint64_t packed() const { return uint64_t{waits} << 32 | values; }
  static CallWords unpack(uint64_t both) {
    return {static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both)};
  }
};
CallWords words_of(const std::vector<CollectiveCall>& calls);
CallWords words_of_message(const CollectiveCall& call);  // the same of a send and its receive

enum class Agreement : uint8_t { alike, wrong_values, hangs };
Agreement compare(uint64_t own, uint64_t other);

// Puts values into what the calls receive that no rank has sent.
void spoil_payloads(const std::vector<CollectiveCall>& calls, const CommState& comm);

}  // namespace gpuprof::simcuda
