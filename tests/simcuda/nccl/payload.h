// SPDX-License-Identifier: Apache-2.0
// What collectives move between ranks: payloads of at most kPayloadBytes for each rank, so that
// programs that agree on something (how many parameters there are, say) find that they do. Larger
// ones, messages, and reductions of 8 and 16 bit floats or by operations that the program made take
// their time and move nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simcuda/nccl/comm.h"

namespace gpuprof::simcuda {

// `collective`: its number in the communicator. Every rank puts before any takes; under the core's
// lock.
void put_payloads(const std::vector<CollectiveCall>& calls, const CommState& comm,
                  uint64_t collective);
void take_payloads(const std::vector<CollectiveCall>& calls, const CommState& comm,
                   uint64_t collective);

}  // namespace gpuprof::simcuda
