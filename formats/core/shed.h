// SPDX-License-Identifier: Apache-2.0
// What GPUPROF_BUDGET may take out of a recording. Values are part of the dump format: never reuse
// one. Work of GPUs, launches, copies, sets, collectives, calls on CUDA graphs and NVTX are never
// taken out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

enum class ShedKind : uint8_t {
  none = 0,
  samples = 1,    // Python stacks of host samples, and how threads ran between them
  operators = 2,  // PyTorch's operators, annotations and layers
  stacks = 3,     // call stacks of calls and of PyTorch's allocations
  calls = 4,  // calls that start no GPU work and wait for none: allocations, events, streams ...
  waits = 5,  // calls that wait for the GPU
};
inline constexpr size_t kShedKinds = 6;  // with none, which stands for what always stays

struct ShedText {
  const char* name;  // in JSON
  const char* text;  // in sentences
};
inline constexpr ShedText kShedTexts[kShedKinds] = {
    {"", "the rest"},
    {"samples", "host samples"},
    {"operators", "PyTorch's operators and layers"},
    {"stacks", "call stacks"},
    {"calls", "API calls that start no GPU work"},
    {"waits", "calls that wait for the GPU"},
};

}  // namespace gpuprof
