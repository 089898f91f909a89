// SPDX-License-Identifier: Apache-2.0
// The rows of events: GPU work, calls, operators, collectives, samples. Those of several processes
// in one order, by step and begin; what is in no step comes first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/exported.h"
#include "tools/parquet/table_file.h"

namespace gpuprof::parquet_export {

// Where a row comes from, and its place in the order.
struct RowKey {
  int64_t step;  // kNoStep: in none
  int64_t begin;
  uint32_t source;  // in the group
  uint32_t event;   // in Process::events, in Exported::collectives, or in a table's own count
  uint32_t lane;    // stream or thread in the timeline; samples: which counter, or kStack
  bool in_steps;

  static constexpr int64_t kNoStep = INT64_MIN;
  static constexpr uint32_t kStack = 0xffffffff;
};

// The keys of a table's rows, sorted. `Enum` is the table's.
template <typename Enum>
std::vector<RowKey> sorted_keys(std::span<const Exported> sources);

// Adds the rows of `keys`. Reads alone: several threads may write different files.
template <typename Enum>
void add_rows(std::span<const Exported> sources, std::span<const RowKey> keys, TableFile& file);

}  // namespace gpuprof::parquet_export
