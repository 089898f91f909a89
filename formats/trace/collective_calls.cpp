// SPDX-License-Identifier: Apache-2.0
#include "formats/trace/collective_calls.h"

#include "formats/trace/names.h"

namespace gpuprof {
namespace {

bool is_of_range(const Shape& shape) { return shape.flags & kFlagFromNvtx; }

}  // namespace

std::optional<uint64_t> collective_elements(const Shape& shape, const EventExtra& extra) {
  return is_of_range(shape) ? std::nullopt : std::optional(extra.bytes);
}

std::optional<uint64_t> collective_own_bytes(const Shape& shape, const EventExtra& extra) {
  if (is_of_range(shape)) {
    const bool known = extra.bytes != CollectivePayload::kUnknownCount;
    return known ? std::optional(extra.bytes) : std::nullopt;
  }
  const uint64_t size = nccl_type(shape.data_type).bytes;
  return size ? std::optional(extra.bytes * size) : std::nullopt;
}

PerRankBuffers per_rank_buffers(std::string_view function) {
  const std::string_view name = collective_name(function).kineto;
  const bool exchanges = name == "alltoall";
  return {exchanges || name == "reduce_scatter" || name == "scatter",
          exchanges || name == "allgather" || name == "gather"};
}

std::optional<uint64_t> collective_sequence(const Shape& shape, const EventExtra& extra) {
  const bool known = !is_of_range(shape) || shape.communicator != 0;
  return known ? std::optional(extra.value) : std::nullopt;
}

bool has_result(const Shape& shape) { return !is_of_range(shape); }
bool has_stream(const Shape& shape) { return !is_of_range(shape); }

}  // namespace gpuprof
