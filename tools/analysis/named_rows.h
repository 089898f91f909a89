// SPDX-License-Identifier: Apache-2.0
// Rows of a table that were summed up by name.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpuprof::analysis {

// Each with its name, those with the greatest `measure` (a member, or what a function makes of a
// row) first, equal ones by name.
template <typename Row, typename Measure>
std::vector<Row> named_rows(std::map<std::string, Row>&& rows, Measure measure) {
  std::vector<Row> out;
  out.reserve(rows.size());
  for (auto& [name, row] : rows) {
    row.name = name;
    out.push_back(std::move(row));
  }
  std::stable_sort(out.begin(), out.end(), [&](const Row& a, const Row& b) {
    return std::invoke(measure, a) > std::invoke(measure, b);
  });
  return out;
}

}  // namespace gpuprof::analysis
