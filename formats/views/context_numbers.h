// SPDX-License-Identifier: Apache-2.0
// Streams are numbered in each context anew: which of the contexts that have a stream of a number a
// stream is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

// Of the streams of one process. Thread-safe once it is made.
class ContextNumbers {
 public:
  ContextNumbers() = default;
  explicit ContextNumbers(const Process& process);
  // From 0, in order of the contexts' own numbers, of those with a stream of that number on that
  // device; at most 5.
  size_t of(const Lane& stream) const;

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  // device, stream, context
  std::vector<Key> keys_;                                // in order, each once
};

}  // namespace gpuprof
