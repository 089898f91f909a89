// SPDX-License-Identifier: Apache-2.0
// The order of rows of events, and what each of them begins with.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "tools/parquet/event_rows.h"

namespace gpuprof::parquet_export {

inline void sort(std::vector<RowKey>& keys) {
  std::sort(keys.begin(), keys.end(), [](const RowKey& a, const RowKey& b) {
    return std::tie(a.step, a.begin, a.source, a.lane, a.event) <
           std::tie(b.step, b.begin, b.source, b.lane, b.event);
  });
}

inline int64_t step_of(const analysis::Timeline& timeline, int64_t time) {
  const Step* const step = timeline.step_at(time);
  return step ? static_cast<int64_t>(step->step) : RowKey::kNoStep;
}

// What each row begins with.
template <typename Enum>
void put_place(Row<Enum>& row, const Exported& source, const RowKey& key) {
  const int32_t rank = source.process->header.rank();
  row.put(Enum::process, source.id);
  row.put_if(rank >= 0, Enum::rank, rank);
  row.put_if(key.step != RowKey::kNoStep, Enum::step, key.step);
}

}  // namespace gpuprof::parquet_export
