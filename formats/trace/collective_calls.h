// SPDX-License-Identifier: Apache-2.0
// What is known of a call of NCCL's. Its NVTX range (kFlagFromNvtx) tells less than a hook: no
// result, no stream, no data type; and bytes instead of elements, if anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/trace/trace.h"

namespace gpuprof {

// As the call's argument, of one rank; nothing: not known.
std::optional<uint64_t> collective_elements(const Shape& shape, const EventExtra& extra);
std::optional<uint64_t> collective_own_bytes(const Shape& shape, const EventExtra& extra);
// Which of its buffers hold the count once for each rank, as NCCL defines the count (nccl.h):
// others hold it once.
struct PerRankBuffers {
  bool input, output;
};
PerRankBuffers per_rank_buffers(std::string_view function);
// Its number on its communicator.
std::optional<uint64_t> collective_sequence(const Shape& shape, const EventExtra& extra);

// Of any call: whether what it returned is known.
bool has_result(const Shape& shape);
// Of a collective: whether the stream that the program gave it is known.
bool has_stream(const Shape& shape);

}  // namespace gpuprof
